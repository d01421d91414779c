// What to show for a usage of the chat backend. The service writes the sentences; the page adds names and buttons.

const offers = [
    { plan: "paid", name: "Premium", about: "800 messages every month" },
    { plan: "pro", name: "Pro", about: "As many messages as you like" },
];

export function offer(plan) {
    return offers.find((each) => each.plan === plan);
}

/** The usage with the service's answer to a message with this model: its sentence, and why it would be refused. */
export function withModel(usage, model) {
    const answer = usage.models?.[model];
    return answer ? { ...usage, reason: null, fallback: null, banner: null, ...answer } : usage;
}

/** Whether the service would refuse a message. One with a model of more weight is refused while others are not. */
export function isBlocked(usage) {
    return usage?.display === "blocked" || Boolean(usage?.reason);
}

/** What users read for a model. */
export function modelLabel(name, models) {
    return models.find((each) => each.name === name)?.label ?? name;
}

/** Whether messages come back after a wait, which becomes shorter. */
export function hasWindow(usage) {
    return [usage, ...Object.values(usage?.models ?? {})].some((each) => each?.window_resets ?? each?.model_resets);
}

/**
 * What is left of a model, of the service's answer to a message with it; null if it has no limit of its own, or if another
 * limit refuses the message, which what is left of the model would contradict.
 */
export function leftText(answer) {
    if (answer?.model_remaining === undefined) return null;
    if (answer.model_remaining === 0) return "none left";
    return isBlocked(answer) ? null : `${number(Math.min(answer.model_remaining, answer.remaining ?? Infinity))} left`;
}

/** The line above the composer: `{tone, day, text}`, or null. */
export function indicator(usage) {
    // A refusal's sentence takes the composer's place.
    if (!usage?.banner || isBlocked(usage)) return null;
    if (usage.display === "compact") return { tone: usage.tier, text: usage.banner };
    if (usage.display !== "trial") return null;
    return { tone: "trial", day: `Day ${usage.day} of ${usage.days} · `, text: usage.banner };
}

/** The button that lets a blocked user send again: `{action, plan, model, label}`; `models` are those to choose from. */
export function wayBack(usage, models) {
    const fallback = models.find(({ name }) => name === usage.fallback);
    if (fallback) return { action: "pick", model: fallback.name, label: `Go on with ${fallback.label}` };
    if (usage.state === "billing_retry") return { action: "pay", label: "Fix payment" };
    if (!canRestore(usage)) return { action: "subscribe", plan: "pro", label: "Subscribe to Pro" };
    return { action: "subscribe", plan: offer(usage.previous_plan)?.plan ?? "paid", label: "Subscribe" };
}

/** Whether there is no subscription, so that one may be restored. */
export function canRestore(usage) {
    return !["active", "cancelled", "grace_period", "billing_retry"].includes(usage.state);
}

/** The notice about the subscription: `{tone, text, action, plan, label}`, or null. */
export function notice(usage) {
    if (!usage?.notice) return null;
    const buttons = {
        cancelled: { action: "resume", label: "Resubscribe" },
        trial: { action: "subscribe", plan: "paid", label: "Subscribe" },
    };
    const calm = buttons[usage.state];
    const button = calm ?? { action: "pay", label: "Fix payment" };
    return { tone: calm ? "calm" : "urgent", text: usage.notice, ...button };
}

/** "680 of 800 messages used" */
export function usedText(usage) {
    if (usage.limit === 0) return "No messages in this plan";
    if (usage.limit !== null) return `${number(usage.used)} of ${number(usage.limit)} messages used`;
    return `${number(usage.used)} ${usage.used === 1 ? "message" : "messages"} used`;
}

export function remainingText(usage) {
    return usage.limit === null ? "Unlimited" : number(usage.remaining);
}

/** The rows of the sheet: `[term, text, lang]`; `lang` is that of a word of the service. `models` are those to choose from. */
export function facts(usage, now, models) {
    const used = usage.limit === null ? number(usage.used) : `${number(usage.used)} of ${number(usage.limit)}`;
    const rows = [["State", usage.state_label, usage.lang], ["Used", used], ["Remaining", remainingText(usage)]];
    if (usage.window_resets) {
        rows.push(["Used in this window", `${number(usage.window_used)} of ${number(usage.window_limit)}`]);
        rows.push(["Window ends", instantText(usage.window_resets)]);
    }
    if (usage.model_limit !== undefined) {
        const label = modelLabel(usage.model, models);
        rows.push([`Used with ${label}`, `${number(usage.model_used)} of ${number(usage.model_limit)}`]);
        if (usage.model_resets) rows.push([`${label} refreshes`, instantText(usage.model_resets)]);
    }
    if (usage.price) rows.push(["Price", `${usage.price} ${usage.currency}`]);
    const end = usage.expires ?? usage.grace_until;
    // An allowance that comes back after the end of access is of no use.
    if (usage.resets && !(end && end <= usage.resets)) rows.push(["Refreshes", instantText(usage.resets)]);
    if (end) rows.push([endName(usage, now), instantText(end)]);
    else if (usage.renews) rows.push(["Renews", instantText(usage.renews)]);
    return rows;
}

function endName({ expires, plan }, now) {
    const isOver = expires && new Date(expires) <= now;
    if (expires && plan === "trial") return isOver ? "Trial ended" : "Trial ends";
    return isOver ? "Ended" : "Active until";
}

/** The choices of "Manage subscription", the most likely first: `{action, plan, label, about}`. */
export function choices(usage) {
    const isPro = usage.plan === "pro";
    const toPro = { action: "subscribe", plan: "pro", label: "Switch to Pro", about: offer("pro").about };
    const toPremium = { action: "downgrade", plan: "paid", label: "Switch to Premium", about: offer("paid").about };
    const keepUntilEnd = "You keep it until the time you've paid for is over";
    const cancel = { action: "cancel", label: "Cancel subscription", about: keepUntilEnd };
    const resume = { action: "resume", label: "Resubscribe", about: "Goes on as before" };
    switch (usage.state) {
        case "active":
            return [isPro ? toPremium : toPro, cancel];
        case "cancelled":
            return isPro ? [resume] : [resume, toPro];
        case "grace_period":
        case "billing_retry":
            return [{ action: "pay", label: "Fix payment", about: "Try the payment once more" }];
        default:
            return offers
                .map(({ plan, name, about }) => ({ action: "subscribe", plan, label: `Subscribe to ${name}`, about }))
                .toSorted((one, other) => (other.plan === usage.previous_plan) - (one.plan === usage.previous_plan));
    }
}

/** What changes with a plan that gives less. */
export function downgradeText(plan, usage) {
    const instant = usage.renews ?? usage.expires ?? usage.resets;
    const start = instant ? dayText(instant) : "your next renewal";
    return `${offer(plan).about}, from ${start} on. Until then nothing changes.`;
}

/** "December 1, 2026", in UTC as all of the service's dates. */
function dayText(instant) {
    const options = { year: "numeric", month: "long", day: "numeric", timeZone: "UTC" };
    return new Date(instant).toLocaleDateString("en-US", options);
}

/** "December 1, 2026, 00:00 UTC" */
function instantText(instant) {
    return `${dayText(instant)}, ${instant.slice(11, 16)} UTC`;
}

function number(value) {
    return value.toLocaleString("en-US");
}
