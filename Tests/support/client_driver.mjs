// Calls the client for Node.js: a request is a line of JSON on standard input, its result one on standard output.
import { createInterface } from "node:readline";

const { Headroom } = await import(process.argv[2]);
await fetch("data:,"); // it is loaded with its first use, which takes a while
const clients = new Map();

const CALLBACKS = {
  "own words": (error) => ({ status: "allowed", banner: `own words for ${error.user}` }),
  "the code": (error) => (error.code === "UNKNOWN" ? "refuse" : "allow"),
};

async function perform({ client, method, user, options, body }) {
  const headroom = clients.get(client);
  if (method === "close") return headroom.close();
  if (method !== "hold") return headroom[method](user, options);
  const seen = {};
  try {
    await headroom.hold(user, options, async (hold) => {
      Object.assign(seen, { ran: true, hold, answer: hold.answer });
      if (body.amount !== undefined) hold.amount = body.amount;
      if (body.raises) throw new RangeError("the model failed");
    });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    seen.raised = true;
  }
  return { ran: true, raised: seen.raised ?? false, ...answersOf(seen.hold) };
}

const answersOf = ({ answer, outcome, error, key }) => ({ answer, key, outcome: outcome ?? null, error: error?.name ?? null });

async function result(request) {
  try {
    if (request.create) {
      const { url, ...options } = request.create;
      options.whenAway = CALLBACKS[options.whenAway] ?? options.whenAway;
      clients.set(request.client, new Headroom(url, { ...options, log: () => {} }));
      return { value: null };
    }
    return { value: (await perform(request)) ?? null };
  } catch (error) {
    const { name, code, message, answer, user, key } = error;
    return { failure: { name, code: code ?? null, message, answer: answer ?? null, user, key } };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  result(request).then((value) => console.log(JSON.stringify({ id: request.id, ...value })));
}
