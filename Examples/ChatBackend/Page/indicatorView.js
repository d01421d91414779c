// What is left, above the composer, as loud as the service asks for.

import { element, icon } from "./element.js";
import { makeRing } from "./ring.js";

export function makeIndicator(place, openDetails) {
    const ring = makeRing();
    const words = element("span", { class: "words" });
    const more = element("span", { class: "unseen" }, ". Show details");
    const attributes = { type: "button", class: "indicator", "aria-haspopup": "dialog", onclick: openDetails };
    place.append(element("button", attributes, ring.element, words, more, icon("next")));

    return function show({ description }) {
        const { indicator } = description;
        place.dataset.display = description.display;
        place.dataset.tier = description.tier;
        place.hidden = indicator === null;
        if (!indicator) return;
        place.dataset.tone = indicator.tone;
        if (words.textContent !== indicator.words) words.textContent = indicator.words;
        ring.show(description.ring, description.tier);
    };
}
