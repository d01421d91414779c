// The optimistic counter: what is shown while messages are under way, and how it gives way to what the server says.
//
// What the server says comes by two ways, the answer to a message and the stream of changes, which overtake each other.
// So messages are not added to what it said last, which may have them already: pressing send notes the total to which
// the message leads, and no less than that is shown until the message is held, refused or given back.

import { accessibleWith, counted, isSameAllowance, shifted } from "./usageFigures.js";

/** For how long after an answer a change that says less may be one that the answer has overtaken. */
export const settlingTime_ms = 1000;
/** For how long a message that was given back is taken off, if no change tells that it was. */
export const givingBackTime_ms = 5000;

export const emptyCounter = Object.freeze({
    /** What the server said last; null before it has said anything. */
    usage: null,
    /**
     * Messages under way: `{id, total, isHeld, heldTotal}`, the total being the least to show while it is not known to
     * be held, and the other what the server said when it was: null where nobody could be asked.
     */
    underWay: [],
    /** Messages given back that the server still counts: `{total, until_ms}`. */
    givenBack: null,
    /** A change that says less than the answer before it: `{usage, due_ms}`. */
    doubtful: null,
    answered_ms: -Infinity,
});

/** The usage to show. */
export function shown(counter) {
    if (!counter.usage) return null;
    const known = counted(counter.usage);
    const expected = counter.underWay.filter((message) => !message.isHeld).map((message) => message.total);
    const total = Math.max(known - (counter.givenBack ? 1 : 0), ...expected);
    return shifted(counter.usage, total - known);
}

/** Send was pressed. */
export function pressed(counter, id) {
    const usage = shown(counter);
    const total = usage ? counted(usage) + 1 : 1;
    return { ...counter, underWay: [...without(counter, id), { id, total, isHeld: false }] };
}

/** The server holds the message, and says where that leaves the user. */
export function held(counter, id, usage, now_ms) {
    const heldTotal = usage && !usage.degraded ? counted(usage) : null;
    const underWay = counter.underWay.map((message) =>
        message.id === id ? { ...message, isHeld: true, heldTotal } : message,
    );
    return answered({ ...counter, underWay }, usage, now_ms);
}

/** The message is counted, or refused. */
export function settled(counter, id, usage, now_ms) {
    return answered({ ...counter, underWay: without(counter, id) }, usage, now_ms);
}

/** The message was stopped, or failed: the server gives it back, and tells so a little later. */
export function givenBack(counter, id, now_ms) {
    const message = counter.underWay.find((each) => each.id === id);
    const next = { ...counter, underWay: without(counter, id) };
    if (!message?.isHeld || message.heldTotal === null || !counter.usage) return next;
    // Told already: the change that takes it off has overtaken the answer's end.
    if (counted(counter.usage) < message.heldTotal) return next;
    return { ...next, givenBack: { total: counted(counter.usage), until_ms: now_ms + givingBackTime_ms } };
}

/** The stream of changes, or a reading that was under way meanwhile, says where the user stands. */
export function told(counter, usage, now_ms) {
    if (!usage || usage.degraded) return counter;
    const isSettling = now_ms - counter.answered_ms < settlingTime_ms && !counter.givenBack;
    if (isSettling && mayBeOlder(usage, counter.usage)) {
        return { ...counter, doubtful: { usage, due_ms: counter.answered_ms + settlingTime_ms } };
    }
    return accepted(counter, usage);
}

/**
 * Time has passed: nothing newer came, so a doubtful change was the truth, and what was given back is not taken off.
 */
export function afterWaiting(counter, now_ms) {
    let next = counter;
    if (next.givenBack && next.givenBack.until_ms <= now_ms) next = { ...next, givenBack: null };
    if (next.doubtful && next.doubtful.due_ms <= now_ms) next = accepted(next, next.doubtful.usage);
    return next;
}

/** When `afterWaiting` has something to do; null when it has not. */
export function waitsUntil_ms(counter) {
    const instants = [counter.givenBack?.until_ms, counter.doubtful?.due_ms].filter((instant) => instant !== undefined);
    return instants.length ? Math.min(...instants) : null;
}

function answered(counter, usage, now_ms) {
    // Nobody could be asked: what was known stays.
    if (!usage || usage.degraded) return counter;
    return accepted({ ...counter, answered_ms: now_ms }, usage);
}

function accepted(counter, usage) {
    const before = counter.usage;
    const isFresh = !before || !isSameAllowance(before, usage) || counted(usage) < counted(before);
    const next = { ...counter, usage: withSentences(usage, before), doubtful: null };
    if (!isFresh) return next;
    // Reset, or another allowance: what messages under way lead to begins anew from here.
    let total = counted(usage);
    next.underWay = counter.underWay.map((message) => (message.isHeld ? message : { ...message, total: (total += 1) }));
    next.givenBack = null;
    return next;
}

/** An answer without what only a reading tells keeps what is known of it, with its own number in the sentence. */
function withSentences(usage, before) {
    if (usage.accessible || !before || !isSameAllowance(before, usage)) return usage;
    const accessible = accessibleWith(before, usage.used);
    const { label, renews, grace_until, next_plan } = before;
    return { ...usage, label, accessible, renews, grace_until, next_plan };
}

function mayBeOlder(usage, known) {
    if (!known || !isSameAllowance(usage, known)) return false;
    return counted(usage) < counted(known) || (counted(usage) === counted(known) && usage.display !== known.display);
}

function without(counter, id) {
    return counter.underWay.filter((message) => message.id !== id);
}
