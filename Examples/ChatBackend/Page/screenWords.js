// What the page's own screens say: buying, restoring, managing, and before a downgrade. Sentences about usage are the
// service's.

import { dayWords } from "./dates.js";
import { offer } from "./plans.js";
import { Refusal } from "./service.js";

export const detailsFailed = "I couldn't load your subscription details right now.";
export const managementFailed = "I couldn't open subscription management. Try again from your device Settings.";
export const restored = "I found your subscription. Everything is as it was.";

const purchaseFailed = "I couldn't complete that purchase. Let's try again when you're ready.";
const purchaseLost =
    "I lost connection during the purchase. Don't worry — if you were charged, it'll show up shortly.";

/** Where a subscription is restored from, and what is said there when there is none. */
const nothingRestored = {
    gate: "I wasn't able to find a previous subscription. If you think this is wrong, reach out to support.",
    settings: "I didn't find an active subscription to restore.",
};

/** Why an action of the sheet or the gate did not happen. What went wrong in particular is in the backend's log. */
export function failureWords(action, error) {
    if (action === "cancel" || action === "downgrade") return managementFailed;
    // Without an answer it is unknown whether the store accepted the purchase.
    const isLost = !(error instanceof Refusal) || error.code === "UNKNOWN";
    return isLost ? purchaseLost : purchaseFailed;
}

/** Why nothing was restored; `place` is "gate" or "settings". */
export function restoreWords(place, error) {
    const hasNone = error instanceof Refusal && error.code === "NOTHING";
    return hasNone ? nothingRestored[place] : detailsFailed;
}

/** What stays and what changes with a plan that gives less. */
export function downgradeWords(plan, usage) {
    const instant = usage.renews ?? usage.expires ?? usage.resets;
    const from = instant ? dayWords(instant) : "your next renewal";
    return {
        title: `Switch to ${offer(plan).name}?`,
        stays: "Everything you've written so far stays, and you can read all of it.",
        changes: `${offer(plan).about}, from ${from} on. Until then nothing changes.`,
        confirm: `Switch to ${offer(plan).name}`,
        keep: `Keep ${offer(usage.plan)?.name ?? "my plan"}`,
    };
}
