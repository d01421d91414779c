// Messages that are not sent yet, in the order in which they were written: `{id, text, writtenAt_ms, waitsFor, words}`.
//
// `waitsFor` is what has to happen first:
//   null          nothing: it is under way, or behind one that is
//   "connection"  the chat backend is reached again
//   "headroom"    the chat backend reaches Headroom again
//   "allowance"   the user may send again
//   "elsewhere"   another window is sending it: to be asked for again, which sends nothing twice
//   "person"      somebody presses "Try again"; it keeps nothing else waiting

/** Behind what waits already, a message waits for the same; not for another window, which does not know it. */
export function add(outbox, message) {
    const before = waiting(outbox).find((each) => each.waitsFor !== "elsewhere");
    return [...without(outbox, message.id), { waitsFor: before?.waitsFor ?? null, ...message }];
}

/** As they were written, in whatever window. */
export function inOrder(outbox) {
    return outbox.toSorted((one, other) => (one.writtenAt_ms ?? 0) - (other.writtenAt_ms ?? 0));
}

/** With this message, in place of what is known of it. */
export function placed(outbox, message) {
    return inOrder([...without(outbox, message.id), message]);
}

/**
 * What waits is what all windows keep: changed by another window, it is changed here; removed there, it is gone.
 * What is to be sent by this window stays its own.
 */
export function following(outbox, kept) {
    const own = outbox.filter((message) => message.waitsFor === null);
    const ids = new Set(own.map((message) => message.id));
    return inOrder([...own, ...kept.filter((message) => !ids.has(message.id))]);
}

export function without(outbox, id) {
    return outbox.filter((message) => message.id !== id);
}

export function changed(outbox, id, changes) {
    return outbox.map((message) => (message.id === id ? { ...message, ...changes } : message));
}

/** What waited for this waits no longer. */
export function awake(outbox, reason) {
    if (!outbox.some((message) => message.waitsFor === reason)) return outbox;
    return outbox.map((message) => (message.waitsFor === reason ? { ...message, waitsFor: null } : message));
}

/** The message to send now, or null: none overtakes another. */
export function next(outbox) {
    const first = outbox.find((message) => message.waitsFor !== "person");
    return first && first.waitsFor === null ? first : null;
}

/** Messages that somebody waits for to be sent by themselves. */
export function waiting(outbox) {
    return outbox.filter((message) => message.waitsFor !== null && message.waitsFor !== "person");
}

/** Codes of failures that are not Headroom's. */
const ownFailures = ["MODEL", "INTERNAL"];

/**
 * What a message waits for after an attempt that did not send it.
 *
 * `outcome.kind`: "blocked"; "failed" after the backend's `failed` event, with its `code`; "refused" with an HTTP
 * `status` and a `code`; "unreachable" when nothing answered or the answer broke off; "stopped".
 */
export function waitsAfter(outcome) {
    switch (outcome.kind) {
        case "blocked":
            return "allowance";
        case "unreachable":
            return "connection";
        case "failed":
            // What Headroom could not tell mends itself; a failing model is the person's to judge.
            return outcome.canRetry && !ownFailures.includes(outcome.code) ? "headroom" : "person";
        case "refused":
            if (outcome.code === "UNDERWAY") return "elsewhere";
            return outcome.status === 429 || outcome.status >= 500 ? "connection" : "person";
        default:
            return "person";
    }
}
