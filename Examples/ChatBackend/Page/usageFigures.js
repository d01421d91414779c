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
    const isLimited = typeof usage.remaining === "number";
    const remaining = isLimited ? Math.max(0, usage.remaining - messages) : usage.remaining;
    return {
        ...usage,
        used,
        remaining,
        banner: isLimited ? withNumber(usage.banner, usage.remaining, remaining) : usage.banner,
        accessible: withNumber(usage.accessible, usage.used, used),
    };
}

/**
 * The sentence with a number in place of another: the service alone writes sentences, so they are not composed here.
 */
export function withNumber(sentence, before, after) {
    return sentence?.replace(new RegExp(`(?<!\\d)${before}(?!\\d)`), String(after));
}
