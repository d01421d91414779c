// What stands in an empty conversation.

import { element, setText } from "./element.js";
import { isNamed } from "./people.js";

const openings = ["Help me plan a calm tomorrow", "I could use some courage", "Tell me something lovely"];

export function makeWelcome(place, composer) {
    const words = place.querySelector("h2");
    const buttons = openings.map((opening) =>
        element("button", { type: "button", class: "opening", onclick: () => composer.take(opening) }, opening),
    );
    place.querySelector(".openings").append(...buttons);

    return function show({ hasLoaded, name, messages, answering, outbox, description }) {
        place.hidden = !hasLoaded || messages.length > 0 || answering !== null || outbox.length > 0;
        setText(words, isNamed(name) ? `Hello ${name}. I'm glad you're here.` : "Hello. I'm glad you're here.");
        place.querySelector("p").hidden = description.gate !== null;
        for (const button of buttons) button.hidden = description.gate !== null;
    };
}
