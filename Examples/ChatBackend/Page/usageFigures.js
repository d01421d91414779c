// Arithmetic on a usage object of the chat backend, and on the sentences that carry its numbers.

/** Messages that count as used: those that are counted, and those that are held for an answer under way. */
export function counted(usage) {
    return usage.used + (usage.held ?? 0);
}

/** Whether two usage objects are about the same allowance, so that their numbers can be compared. */
export function isSameAllowance(one, other) {
    return ["plan", "state", "period", "limit"].every((name) => one[name] === other[name]);
}

/** The usage as it will be with so many messages more (or less, below zero), its sentences included. */
export function shifted(usage, messages) {
    if (messages === 0) return usage;
    const used = Math.max(0, usage.used + messages);
    const isLimited = isNumber(usage.remaining);
    const remaining = isLimited ? Math.max(0, usage.remaining - messages) : usage.remaining;
    return {
        ...usage,
        used,
        remaining,
        banner: isLimited
            ? withNumber(usage.banner, usage.remaining, remaining, usage.display === "compact")
            : usage.banner,
        accessible: accessibleWith(usage, used),
    };
}

/** The sentence for a screen reader with so many messages as used. */
export function accessibleWith(usage, used) {
    return withNumber(usage.accessible, usage.used, used, !isNumber(usage.limit));
}

/**
 * The sentence with a number in place of another: the service alone writes sentences, so they are not composed here. One that
 * reads differently for exactly one message stays as it is until the service tells the other.
 */
export function withNumber(sentence, before, after, hasFormForOne = false) {
    if (hasFormForOne && (before === 1) !== (after === 1)) return sentence;
    return sentence?.replace(new RegExp(`(?<!\\d)${before}(?!\\d)`), String(after));
}

function isNumber(value) {
    return typeof value === "number";
}
