// The texts of the page's own screens: buying, restoring, managing and stopping. Sentences about usage are the service's.

import { ServiceError } from "./service.js";
import { isBlocked, modelLabel } from "./usage.js";

export const detailsFailed = "I couldn't load your subscription details right now.";
export const managementFailed = "I couldn't open subscription management. Try again from your device Settings.";
export const stopped = "Stopped. I gave this message back.";
export const restored = "I found your subscription. Everything is as it was.";

const nothingRestored = {
    gate: "I wasn't able to find a previous subscription. If you think this is wrong, reach out to support.",
    settings: "I didn't find an active subscription to restore.",
};

/** Whose limit refused a message, and whether another model would answer it; null if it was no limit, or the only one. */
export function whoseLimit(usage, models) {
    const whose = limitOwner(usage, models);
    const { fallback, models: answers = {} } = usage;
    // A fallback has a button.
    const isOffered = models.some(({ name }) => name === fallback);
    const canGoOn = !isOffered && models.some(({ name }) => answers[name] && !isBlocked(answers[name]));
    return whose && canGoOn ? `${whose} Another model can still answer.` : whose;
}

function limitOwner({ reason, model }, models) {
    const [, whose] = /^(model_|member_)?.*(?:limit_reached|exceeds_remaining)$/.exec(reason ?? "") ?? [null, null];
    if (whose === "model_") return `This limit is for ${modelLabel(model, models)} only.`;
    if (whose === "member_") return "This limit is for your share of the plan only.";
    return whose === undefined && models.length > 1 ? "This limit is your plan's, for all models together." : null;
}

/** Why a change of the subscription failed. */
export function purchaseFailure(action, error) {
    if (action === "cancel" || action === "downgrade") return managementFailed;
    // Without an answer it is unknown whether the store accepted the purchase.
    const isLost = !(error instanceof ServiceError) || error.code === "UNKNOWN";
    if (!isLost) return "I couldn't complete that purchase. Let's try again when you're ready.";
    return "I lost connection during the purchase. Don't worry — if you were charged, it'll show up shortly.";
}

/** Why nothing was restored; `place` is "gate" or "settings". */
export function restoreFailure(place, error) {
    return error instanceof ServiceError && error.code === "NOTHING" ? nothingRestored[place] : detailsFailed;
}
