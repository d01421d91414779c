// What to show for a usage object: the indicator, the gate, the notice, the ring, the details, and what can be chosen.
// Sentences about usage are the service's; the page adds names of things and what its buttons say.

import { dayWords, instantWords } from "./dates.js";
import { offer, offers } from "./plans.js";
import { downgradeWords } from "./screenWords.js";
import { accessibleWith, counted } from "./usageFigures.js";

const nothingKnown = Object.freeze({
    display: "hidden",
    tier: "silent",
    indicator: null,
    gate: null,
    notice: null,
    ring: null,
    details: null,
});

/** All of it; `now` is a Date. With null, where nothing is known, nothing is shown and everything may be sent. */
export function describe(usage, now) {
    if (!usage) return nothingKnown;
    return {
        display: usage.display,
        tier: usage.tier,
        indicator: indicator(usage),
        gate: gate(usage),
        notice: notice(usage),
        ring: ring(usage),
        details: details(usage, now),
    };
}

/** Whether the service would refuse a message, as far as is known. */
export function isBlocked(usage) {
    return usage?.display === "blocked";
}

function indicator(usage) {
    if (!usage.banner) return null;
    if (usage.display === "compact") return { tone: usage.tier, words: usage.banner };
    // One banner, not two: what is left of the days, and of the messages.
    if (usage.display !== "trial") return null;
    return { tone: "trial", words: `Day ${usage.day} of ${usage.days} · ${usage.banner}` };
}

function gate(usage) {
    if (usage.display !== "blocked") return null;
    return { words: usage.banner ?? "", choice: wayBack(usage), canRestore: !hasSubscription(usage) };
}

/** Whether there is a subscription, so that none has to be restored. */
function hasSubscription(usage) {
    return ["active", "cancelled", "grace_period", "billing_retry"].includes(usage.state);
}

/** What lets the user send again, by the reason of the refusal, or what stands for it where nothing was refused yet. */
function wayBack(usage) {
    const reason = usage.reason ?? reasonOf(usage);
    if (reason === "billing_retry") return { action: "pay", label: "Fix payment" };
    if (reason === "limit_reached") return { action: "subscribe", plan: "pro", label: "Subscribe to Pro" };
    return { action: "subscribe", plan: offer(usage.previous_plan) ? usage.previous_plan : "paid", label: "Subscribe" };
}

/** USAGE gives a reason where there is no access, and none where an allowance is used up: nothing was asked for. */
function reasonOf(usage) {
    if (usage.plan === "trial") return "trial_limit_reached";
    return usage.state === "free" ? "no_subscription" : "limit_reached";
}

function notice(usage) {
    if (!usage.notice) return null;
    if (usage.state === "cancelled") {
        return { tone: "calm", words: usage.notice, choice: { action: "resume", label: "Resubscribe" } };
    }
    return { tone: "urgent", words: usage.notice, choice: { action: "pay", label: "Fix payment" } };
}

/** How full the ring and the bar are, from 0 to 1. */
function ring(usage) {
    if (isUnlimited(usage)) return { share: 0, isUnlimited: true };
    return { share: usage.limit === 0 ? 0 : Math.min(1, counted(usage) / usage.limit), isUnlimited: false };
}

function isUnlimited(usage) {
    return usage.limit === null || usage.limit === undefined;
}

/** "680 of 800 messages used" */
function usedWords(usage) {
    if (usage.limit === 0) return "No messages in this plan";
    const used = number(counted(usage));
    if (!isUnlimited(usage)) return `${used} of ${number(usage.limit)} messages used`;
    return counted(usage) === 1 ? "1 message used" : `${used} messages used`;
}

const stateWords = {
    active: "Active",
    trial: "Trial",
    cancelled: "Cancelled",
    grace_period: "Billing issue",
    billing_retry: "Billing issue",
    expired: "Expired",
    revoked: "Refunded",
    free: "Free",
};

function details(usage, now) {
    const used = counted(usage);
    const limit = isUnlimited(usage) ? null : number(usage.limit);
    return {
        label: usage.label ?? "",
        state: stateWords[usage.state] ?? "",
        usedWords: usedWords(usage),
        used: limit === null ? number(used) : `${number(used)} of ${limit}`,
        remaining: limit === null ? "Unlimited" : number(usage.remaining),
        limit,
        accessible: accessibleWith(usage, used) ?? "",
        bar: usage.limit > 0 ? { value: Math.min(used, usage.limit), maximum: usage.limit } : null,
        dates: dates(usage, now),
        nextPlan: usage.next_plan ?? null,
        choices: choices(usage),
    };
}

function dates(usage, now) {
    const found = [];
    const isOver = usage.expires && new Date(usage.expires) <= now;
    const end = usage.expires ?? usage.grace_until;
    if (usage.expires && usage.plan === "trial") {
        found.push({ term: isOver ? "Trial ended" : "Trial ends", instant: usage.expires });
    } else if (usage.expires) {
        found.push({ term: isOver ? "Ended" : "Active until", instant: usage.expires });
    } else if (usage.grace_until) {
        found.push({ term: "Active until", instant: usage.grace_until });
    } else if (usage.renews) {
        found.push({ term: "Renews", instant: usage.renews });
    }
    // What ends before the allowance comes back gets nothing from it.
    if (usage.resets && !(end && end <= usage.resets)) {
        found.unshift({ term: "Refreshes", instant: usage.resets });
    }
    return found.map(({ term, instant }) => ({ term, words: instantWords(instant) }));
}

/** What "Manage subscription" offers, the most likely first. */
function choices(usage) {
    const pay = { action: "pay", label: "Fix payment", about: "Try the payment once more" };
    const keptWords = "You keep it until the time you've paid for is over";
    const cancel = { action: "cancel", label: "Cancel subscription", about: keptWords };
    const pro = { action: "subscribe", plan: "pro", label: "Switch to Pro", about: offer("pro").about };
    const premium = {
        action: "downgrade",
        plan: "paid",
        label: "Switch to Premium",
        about: offer("paid").about,
        question: downgradeWords("paid", usage),
    };
    const isPro = usage.plan === "pro";
    switch (usage.state) {
        case "active":
            return isPro ? [premium, cancel] : [pro, cancel];
        case "cancelled": {
            const about = usage.expires ? `Goes on after ${dayWords(usage.expires)}` : "Goes on as before";
            const resume = { action: "resume", label: "Resubscribe", about };
            return isPro ? [resume] : [resume, pro];
        }
        // What is not paid ends by itself.
        case "grace_period":
        case "billing_retry":
            return [pay];
        default:
            return subscriptions(usage.previous_plan);
    }
}

function subscriptions(previousPlan) {
    const all = offers.map(({ plan, name, about }) => ({
        action: "subscribe",
        plan,
        label: `Subscribe to ${name}`,
        about: plan === previousPlan ? `${about} — what you had before` : about,
    }));
    return all.toSorted((one, other) => (other.plan === previousPlan) - (one.plan === previousPlan));
}

function number(value) {
    return value.toLocaleString("en-US");
}
