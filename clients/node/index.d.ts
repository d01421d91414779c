/** What the service says about a user. A field that does not apply is absent; Headroom's reference has the meaning of each. */
export interface Answer {
  /** "allowed": send the message. "repeated": an earlier call with the key was allowed, so show the stored answer, or that it is
   * being written. "blocked": show the banner. "ok": the answer to usage and release. */
  status: "allowed" | "repeated" | "blocked" | "ok";
  /** Whether this call may send the message. A repetition may not. */
  allowed: boolean;
  user: string;
  plan?: string; state?: string; tier?: string; display?: string; period?: string;
  used?: number; held?: number;
  limit?: number | null; remaining?: number | null; // null is unlimited
  windowLimit?: number; windowUsed?: number; windowRemaining?: number; windowResets?: string;
  /** The request's; their numbers are absent if the plan does not count them. */
  model?: string; modelLimit?: number; modelUsed?: number; modelRemaining?: number; modelResets?: string;
  member?: string; memberLimit?: number; memberUsed?: number; memberRemaining?: number;
  resets?: string; expires?: string; renews?: string; graceUntil?: string; // ISO 8601 in UTC
  day?: number; days?: number; crossed?: string; reason?: string;
  retryAfter?: number; // seconds
  fallback?: string; // a model to offer instead of the one that was refused
  released?: number; shadow?: boolean; replayed: boolean; previousPlan?: string; nextPlan?: string;
  label?: string; stateLabel?: string; accessible?: string; price?: string; currency?: string; manage?: string; steps?: string;
  notice?: string; banner?: string;
  /** The service or its database was away. Nothing was counted, unless by an earlier attempt that was not answered. */
  degraded: boolean;
  /** Fields of later versions of the service. */
  [field: string]: unknown;
}

/** What a plan allows of a user's messages with a model, or of those of a member. */
export interface Allowance {
  kind: "model" | "member";
  /** Of the model, or the beginning of models' names and *; the member's id. */
  name: string;
  label?: string; // the model's name for users
  used?: number; held?: number;
  limit?: number | null; remaining?: number | null; // null is unlimited
  tier?: string;
  windowLimit?: number; windowUsed?: number; windowRemaining?: number; windowResets?: string;
  weight?: number; fallback?: string;
  [field: string]: unknown;
}

/** All limits of a user's plan for models and members, with what is used of them in a period. */
export interface Allowances { user: string; period?: string; allowances: Allowance[]; }

/** The parts of a user's messages that a plan may limit: those with a model, and those of the member who sends, if `user` is an account. */
export interface Parts { model?: string; member?: string; }

/** A request failed. The message is for logs, and names no user. With its key, a request may be sent again, and counts once. */
export class HeadroomError extends Error { code: string; retryAfter: number; user: string; key?: string; }
/** Nothing was counted; a later attempt may succeed. */
export class Unavailable extends HeadroomError {}
/** It is not known whether it was counted; a later attempt is safe with the same key. */
export class Unknown extends Unavailable {}
/** A malformed user, number, key, model or language: a mistake of the program. */
export class BadArgument extends HeadroomError {}
/** A token is required, this one is not valid, or it lacks the scope `chat`. */
export class Unauthorized extends HeadroomError {}
/** There is no such key or period. */
export class NotFound extends HeadroomError {}
/** The key was used with another number or verb, or was released: a new attempt needs a new key. */
export class Conflict extends HeadroomError {}
/** The hold's time has passed, and nothing was counted: a new attempt needs a new key. */
export class Expired extends HeadroomError {}
/** `hold` has not called its function, because the user may not send the message. `answer` has the texts to show. */
export class Blocked extends Error { answer: Answer; }
/** `hold` has not called its function, because an earlier call with the key was allowed: show the stored answer. */
export class Repeated extends Blocked {}

export type Away = "raise" | "allow" | "refuse" | (Partial<Answer> & Pick<Answer, "status">);

export interface Options {
  /** Else the URL's password or user name. */
  token?: string;
  /** Prefers the instances in an order of this client's own, chosen at random, so that many clients spread over all (false). */
  spread?: boolean;
  /** Milliseconds for a call with all its attempts (3000), and for one attempt (1000). */
  timeout?: number; attemptTimeout?: number;
  /** What consume, check, reserve and hold do when there is no answer ("raise"). */
  whenAway?: Away | ((error: Unavailable) => Away);
  fetch?: typeof fetch;
  /** Gets a line when a hold is not settled or a message was answered without Headroom (console.warn). */
  log?: (line: string) => void;
  /** In a Worker, `(task) => ctx.waitUntil(task)`: gets what goes on after a hold without an outcome. */
  waitUntil?: (task: Promise<unknown>) => void;
}

/** Messages that are held while the function of `hold` runs. */
export interface Hold {
  readonly answer: Answer;
  readonly key: string;
  /** Set it to count less than is held (tokens, for example); the rest is given back. */
  amount?: number;
  /** After the function: the answer to the commit or release, or why there is none. */
  readonly outcome?: Answer; readonly error?: HeadroomError;
}

export class Headroom {
  /** Of several instances of a service name all, the nearest first: in one URL, https://TOKEN@HOST:PORT,HOST:PORT, or in an array. A
   * call asks the first that answers. One that drains or is away is left at once, and asked again after a pause. */
  constructor(url: string | URL | readonly (string | URL)[], options?: Options);
  /** Counts n messages if they fit, all or none. Calls with the same key count once; without one, each call counts. */
  consume(user: string, options?: Parts & { n?: number; key?: string; lang?: string; tz?: string }): Promise<Answer>;
  /** What `consume` would answer now; counts nothing. */
  check(user: string, options?: Parts & { n?: number; lang?: string; tz?: string }): Promise<Answer>;
  /** Holds n messages for ttl seconds (120). `hold` commits or releases them as well. */
  reserve(user: string, options: Parts & { n?: number; key: string; ttl?: number; lang?: string; tz?: string }): Promise<Answer>;
  /** Counts n of the messages that the key holds, or all, and gives back the rest. */
  commit(user: string, options: { n?: number; key: string; lang?: string; tz?: string }): Promise<Answer>;
  /** Gives back the messages that the key holds or has counted, once. */
  release(user: string, options: { key: string; lang?: string; tz?: string }): Promise<Answer>;
  /** Usage in the present period or a past one, with the plan's label and a sentence for screen readers. */
  usage(user: string, options?: Parts & { period?: string; lang?: string; tz?: string }): Promise<Answer>;
  /** The limits of the user's plan for models, and for members who have sent, with what is used of them: for a choice of models that
   * shows what is left of each. */
  allowances(user: string, options?: { period?: string }): Promise<Allowances>;
  /** Holds n messages while the function runs, then counts them, or gives them back if it throws. Instead of calling the function it
   * throws Blocked, or Repeated if the key was used before. A function that takes longer than ttl seconds is not counted. */
  hold<T>(user: string, options: Parts & { n?: number; key?: string; ttl?: number; lang?: string; tz?: string },
    body: (hold: Hold) => T | Promise<T>): Promise<T>;
  /** Waits for holds without an outcome, for `timeout` at most, and gives up those that are left. */
  close(): Promise<void>;
}
