// How much is used, as a ring. An ornament: the numbers stand beside it.

import { drawing } from "./element.js";

export function makeRing() {
    const circle = (className, attributes = {}) =>
        drawing("circle", { cx: 18, cy: 18, r: 15, fill: "none", pathLength: 100, class: className, ...attributes });
    const share = circle("ring-share", { "stroke-dasharray": "0 100", transform: "rotate(-90 18 18)" });
    const attributes = { viewBox: "0 0 36 36", class: "ring", "aria-hidden": "true" };
    const whole = drawing("svg", attributes, circle("ring-whole"), share);
    return {
        element: whole,
        /** `ring` is of a usage's description, or null. */
        show(ring, tier) {
            whole.dataset.tier = ring?.isUnlimited ? "unlimited" : tier;
            // A round end is drawn around a share of nothing, too.
            share.style.visibility = ring?.share || ring?.isUnlimited ? "visible" : "hidden";
            share.setAttribute("stroke-dasharray", `${ring?.isUnlimited ? 100 : (ring?.share ?? 0) * 100} 100`);
        },
    };
}
