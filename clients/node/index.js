// A client of Headroom over HTTP, for Node.js, Deno, Bun, Workers: everything with fetch. index.d.ts describes what is exported.

export class HeadroomError extends Error {
  /** With its key, a request may be sent again, and counts once. The message names no user. */
  constructor(code, detail, retryAfter = 0) {
    super(`${code} ${detail}`);
    Object.assign(this, { name: new.target.name, code, retryAfter });
  }
}
export class Unavailable extends HeadroomError {}
export class Unknown extends Unavailable {}
export class BadArgument extends HeadroomError {}
export class Unauthorized extends HeadroomError {}
export class NotFound extends HeadroomError {}
export class Conflict extends HeadroomError {}
export class Expired extends HeadroomError {}

export class Blocked extends Error {
  constructor(answer) {
    super(answer.reason ?? answer.status);
    Object.assign(this, { name: new.target.name, answer });
  }
}
export class Repeated extends Blocked {}

const TYPES = {
  UNAVAILABLE: Unavailable, OVERLOADED: Unavailable, DRAINING: Unavailable, UNREACHABLE: Unavailable, UNKNOWN: Unknown,
  BADARG: BadArgument, TOOLONG: BadArgument, NOAUTH: Unauthorized, FORBIDDEN: Unauthorized, NOTFOUND: NotFound,
  CONFLICT: Conflict, EXPIRED: Expired,
};
const failure = (code, detail, retryAfter) => new (TYPES[code] ?? HeadroomError)(code, detail, retryAfter);
// The codes with which Node.js, Deno and Bun say that there was no connection. Other failures may come after the request was sent.
const NOT_SENT = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|CONNECT_TIMEOUT|ConnectionRefused/;
const LOST = new WeakSet(); // errors that this module has made because there was no answer
const UNSURE = new WeakSet(); // answers of a service without its database, after an attempt that may have held messages
// Answers that do not say whether anything was counted, and errors that are about the key, and so about earlier attempts, too.
const SILENT = new Set(["UNKNOWN", "INTERNAL", "MALFORMED"]);
const ABOUT_KEY = new Set(["CONFLICT", "EXPIRED", "NOTFOUND"]);
const ARRIVAL = 5000; // milliseconds in which a request that was sent may still arrive
const AWAY = "I couldn't check your usage right now";
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
// Doubles up to a second. Random, so that clients that failed together do not retry together.
const backoff = (failures) => Math.min(25 * 2 ** Math.min(failures, 10), 1000) * (0.5 + Math.random() / 2);

// The types of an answer's fields. Those of a later service may be anything.
const NUMBER = /^(held|((window|model|member)_)?(limit|used|remaining)|weight|days?|retry_after|released)$/;
const BOOLEAN = /^(shadow|replayed|degraded)$/;
const TEXT = new RegExp("^((previous_|next_)?plan|state|tier|display|period|((window|model)_)?resets|expires|renews|grace_until|crossed|"
  + "reason|user|model|member|kind|name|fallback|(state_)?label|accessible|price|currency|manage|steps|notice|banner)$");
function isExact([name, value]) {
  if (NUMBER.test(name)) return Number.isSafeInteger(value) && value >= 0 || value === null && /^(limit|remaining)$/.test(name);
  return BOOLEAN.test(name) ? typeof value === "boolean" : !TEXT.test(name) || typeof value === "string";
}
function objectOf(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
const camelCased = (body) =>
  Object.fromEntries(Object.entries(body).map(([name, value]) => [name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), value]));
function allowancesOf({ user, period, allowances }) {
  if (!user || !Array.isArray(allowances)) return undefined;
  // What does not apply may be null here.
  const given = allowances.map((each) => Object.fromEntries(
    Object.entries(Object(each)).filter(([name, value]) => name !== "unlimited" && (value !== null || /^(limit|remaining)$/.test(name))),
  ));
  const isRead = given.every((each) => each.kind && each.name && Object.entries(each).every(isExact));
  return isRead && Object.entries({ user, ...(period && { period }) }).every(isExact)
    ? { user, period: period ?? undefined, allowances: given.map(camelCased) } : undefined;
}
// Nothing for what the service cannot have answered: something between has.
function answerOf(verb, { allowed, unlimited, ...body }) {
  if (verb === "allowances") return allowancesOf(body);
  const type = verb === "release" || verb === "usage" ? "undefined" : "boolean";
  if (typeof allowed !== type || !body.user || !Object.entries(body).every(isExact)) return undefined;
  const yes = body.replayed ? "repeated" : "allowed";
  return decided(allowed === undefined ? "ok" : allowed ? yes : "blocked", camelCased(body));
}
function given(options) {
  if (typeof options === "object" && options !== null) return options;
  throw failure("BADARG", "options are an object, as in { n: 2, key: message.id }");
}
function queryOf(parameters) {
  const query = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return query.length ? `?${new URLSearchParams(query)}` : "";
}
const decided = (status, fields) => ({ replayed: false, degraded: false, ...fields, status, allowed: status === "allowed" });

// Where the instances of a service are. A URL may have several hosts, as in "https://TOKEN@a:6748,b:6748".
function endpoints(urls) {
  return [urls].flat().flatMap((each) => {
    const [, start, hosts, path] = /^(https?:\/\/(?:[^/?#]*@)?)([^/?#@]+)(.*)$/i.exec(each) ?? [];
    if (!hosts) throw new TypeError("the address of the service must begin with http:// or https://, and name a host");
    return hosts.split(",").map((host) => new URL(start + host + path));
  });
}

// An instance. One that drains or is away is left at once, and asked again after a pause.
class Endpoint {
  failures = 0;
  restsUntil = 0;

  constructor({ origin, pathname, username, password }, givenToken) {
    const token = givenToken ?? decodeURIComponent(password || username);
    this.url = `${origin}${pathname.replace(/\/$/, "")}/v1/usage/`;
    this.headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
  }
  rest() {
    // One second, doubled by each failure in a row; random, so that clients that left together do not return together.
    this.restsUntil = Date.now() + 1000 * 2 ** Math.min(Math.max(this.failures - 1, 0), 5) * (1 + Math.random() / 2);
  }
  // Calls that were under way when it was left, with fewer failures, say nothing about now.
  answered(failures) {
    if (failures === this.failures) Object.assign(this, { failures: 0, restsUntil: 0 });
  }
  failed(failures) {
    if (failures !== this.failures) return;
    this.failures += 1;
    this.rest();
  }
}

export class Headroom {
  #endpoints; #options;
  #pending = new Set();
  #isClosed = false;

  constructor(url, options = {}) {
    this.#endpoints = endpoints(url).map((address) => new Endpoint(address, options.token));
    // An order of its own, so that many clients spread over all instances.
    if (options.spread) {
      const drawn = this.#endpoints.map((endpoint) => ({ endpoint, number: Math.random() }));
      this.#endpoints = drawn.sort((a, b) => a.number - b.number).map(({ endpoint }) => endpoint);
    }
    const defaults = { timeout: 3000, attemptTimeout: 1000, whenAway: "raise", log: console.warn, waitUntil: () => {} };
    const chosen = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    this.#options = { ...defaults, fetch: (...request) => globalThis.fetch(...request), ...chosen };
  }

  async consume(user, options = {}) {
    const { n, key = crypto.randomUUID(), model, member, lang, tz } = given(options);
    return this.#decide({ verb: "consume", user, key, body: { n, model, member, lang, tz } }, options.key === undefined);
  }
  async check(user, options = {}) {
    const { n, model, member, lang, tz } = given(options);
    return this.#decide({ verb: "check", user, body: { n, model, member, lang, tz } });
  }
  async reserve(user, options) {
    const { n, key, ttl, model, member, lang, tz } = given(options);
    return this.#decide({ verb: "reserve", user, key: `${key ?? ""}`, body: { n, ttl, model, member, lang, tz } });
  }
  async commit(user, options) {
    const { n, key, lang, tz } = given(options);
    return this.#call({ verb: "commit", user, key: `${key ?? ""}`, body: { n, lang, tz } });
  }
  async release(user, options) {
    const { key, lang, tz } = given(options);
    return this.#call({ verb: "release", user, key: `${key ?? ""}`, body: { lang, tz } });
  }
  async usage(user, options = {}) {
    const { period, model, member, lang, tz } = given(options);
    return this.#call({ verb: "usage", user, path: queryOf({ period, model, member, lang, tz }) });
  }
  async allowances(user, options = {}) {
    return this.#call({ verb: "allowances", user, path: `/allowances${queryOf({ period: given(options).period })}` });
  }

  async hold(user, options, body) {
    const { n = 1, key, ttl = 120, model, member, lang, tz } = given(options);
    const hold = { key: key === undefined ? crypto.randomUUID() : key, amount: undefined, outcome: undefined, error: undefined };
    const until = Date.now() + ttl * 1000;
    try {
      hold.answer = await this.#call({ verb: "reserve", user, key: hold.key, body: { n, ttl, model, member, lang, tz } });
      if (key === undefined && UNSURE.has(hold.answer)) this.#giveBack(user, hold.key, until);
    } catch (error) {
      // Nobody else knows the key.
      if (key === undefined && SILENT.has(error.code)) this.#giveBack(user, hold.key, until);
      hold.answer = this.#answerAway(error);
    }
    if (!hold.answer.allowed) throw new (hold.answer.status === "repeated" ? Repeated : Blocked)(hold.answer);
    let end = { verb: "release", user, key: hold.key, body: {} };
    try {
      const result = await body(hold);
      const amount = hold.amount === undefined ? undefined : Math.max(0, Math.min(hold.amount, n));
      end = { verb: "commit", user, key: hold.key, body: { n: amount, lang, tz } };
      return result;
    } finally {
      if (!hold.answer.degraded) await this.#settle(hold, end, until);
    }
  }

  async close() {
    let timer;
    const late = new Promise((done) => { timer = setTimeout(done, this.#options.timeout); });
    await Promise.race([Promise.all(this.#pending), late]);
    clearTimeout(timer);
    this.#isClosed = true;
  }

  // Sends it once. Without an outcome it goes on in the background, until the hold is over: the caller has the model's answer, and
  // should neither wait nor get an error instead.
  async #settle(hold, request, until, mayArriveUntil = 0, failures = 0) {
    try {
      Object.assign(hold, { outcome: await this.#call(request), error: undefined });
      if (!hold.outcome.degraded) return;
    } catch (error) {
      hold.error = error;
      this.#options.log(`headroom: ${request.verb} of a hold: ${error.message}`);
      if (!(error instanceof Unavailable || (error instanceof NotFound && Date.now() < mayArriveUntil))) return;
    }
    if (Date.now() >= until || this.#isClosed) return;
    const later = sleep(backoff(failures)).then(() => this.#settle(hold, request, until, mayArriveUntil, failures + 1));
    return failures === 0 ? this.#background(later) : later;
  }

  // What an attempt without an answer has counted or holds. It may still be under way.
  #giveBack(user, key, until = Date.now() + ARRIVAL) {
    this.#background(this.#settle({}, { verb: "release", user, key, body: {} }, until, Date.now() + ARRIVAL));
  }

  #background(work) {
    const task = work.finally(() => this.#pending.delete(task));
    this.#pending.add(task);
    this.#options.waitUntil(task);
  }

  async #decide(request, isKeyOwn = false) {
    try {
      return await this.#call(request);
    } catch (error) {
      const answer = this.#answerAway(error);
      // Otherwise a user who tries again would pay twice.
      if (isKeyOwn && error instanceof Unknown && !answer.allowed) this.#giveBack(request.user, request.key);
      return answer;
    }
  }

  #answerAway(error) {
    if (!(error instanceof Unavailable)) throw error;
    const { whenAway, log } = this.#options;
    const verdict = typeof whenAway === "function" ? whenAway(error) : whenAway;
    if (verdict === "raise") throw error;
    log(`headroom: a message was answered without Headroom: ${error.message}`);
    const common = { user: error.user, degraded: true };
    if (verdict === "allow") return decided("allowed", { ...common, banner: `${AWAY} — don't worry, you can keep chatting.` });
    if (verdict === "refuse") return decided("blocked", { ...common, banner: `${AWAY}. Let's try again in a moment.` });
    return decided(verdict.status, { ...common, ...verdict });
  }

  #rested() {
    return this.#endpoints.filter(({ restsUntil }) => restsUntil <= Date.now());
  }

  // The first instance that does not rest, or the one whose rest ends first.
  #choose() {
    const [first, other] = this.#rested();
    if (first === undefined) return this.#endpoints.reduce((a, b) => (b.restsUntil < a.restsUntil ? b : a));
    if (first.failures && other) first.rest(); // one call finds out whether it is back, while others ask the next one
    return first;
  }

  async #call(request) {
    // Dots would be lost in the path of the URL, so nobody is named so.
    if (typeof request.user !== "string" || /^\.{0,2}$/.test(request.user)) throw failure("BADARG", "a user is a text, not empty, . or ..");
    const { timeout, attemptTimeout } = this.#options;
    const end = Date.now() + timeout;
    let unsure = false;
    for (let failures = 0; ; failures++) {
      const endpoint = this.#choose();
      const before = endpoint.failures;
      try {
        const answer = await this.#attempt(endpoint, request, Math.max(1, Math.min(attemptTimeout, end - Date.now())));
        endpoint.answered(before);
        if (unsure && answer.degraded) UNSURE.add(answer);
        // After a lost answer it repeats this call's own attempt, whose answer nobody has received.
        return unsure && answer.status === "repeated" ? { ...answer, status: "allowed", allowed: true, replayed: false } : answer;
      } catch (caught) {
        let error = caught;
        unsure ||= request.key !== undefined && error instanceof Unknown;
        const isAway = error.code === "DRAINING" || LOST.has(error);
        if (isAway) endpoint.failed(before);
        const pause = isAway && this.#rested().length ? 0 : Math.max(backoff(failures), error.retryAfter * 1000 * (1 + Math.random() / 2));
        if (error instanceof Unavailable && Date.now() + pause < end) {
          await sleep(pause);
          if (Date.now() < end) continue; // a busy machine may wake it up too late for another attempt
        }
        if (unsure && !ABOUT_KEY.has(error.code)) error = failure("UNKNOWN", `an attempt was not answered; the last: ${error.message}`);
        throw Object.assign(error, { user: request.user, key: request.key });
      }
    }
  }

  async #attempt(endpoint, { verb, user, key, body, path = `/${verb}` }, ms) {
    if (key === null || (key !== undefined && !/^[!#-~]{1,128}$/.test(key))) {
      throw failure("BADARG", "a key is 1 to 128 visible ASCII characters without spaces and quotes");
    }
    // Without a key a request only reads.
    const lost = (cause, isSent = true) => {
      const error = failure(isSent && key !== undefined ? "UNKNOWN" : "UNREACHABLE", `no answer: ${cause}`);
      LOST.add(error);
      return error;
    };
    const url = endpoint.url + encodeURIComponent(user) + path;
    const headers = { ...endpoint.headers, ...(key !== undefined && { "Idempotency-Key": key }) };
    const sent = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(ms) };
    let response, text;
    try {
      const { fetch } = this.#options; // called without an object, as runtimes demand
      response = await fetch(url, sent);
      text = await response.text();
    } catch (error) {
      const code = `${error.code ?? ""} ${error.cause?.code ?? ""}`;
      throw lost(`${error.message} ${code}`.trim(), !NOT_SENT.test(code));
    }
    const json = objectOf(text);
    const answer = response.ok ? answerOf(verb, json) : undefined;
    if (answer) return answer;
    if (response.ok || typeof json.code !== "string" || typeof json.detail !== "string") {
      const problem = `status ${response.status} without an answer of Headroom`;
      throw response.status >= 500 ? lost(problem) : failure("MALFORMED", problem);
    }
    throw failure(json.code, json.detail, Number(/^\d{1,9}$/.exec(response.headers.get("Retry-After"))?.[0] ?? 0));
  }
}
