// Says when something cannot be reached. Nothing is locked meanwhile.

import { icon, setText, element } from "./element.js";

export function makeConnection(place) {
    const words = element("span", {});
    place.append(icon("away"), words);

    return function show({ connection, offlineWords, description }) {
        const told = connection === "lost" ? lostWords : description.gate && offlineWords ? gateWords : offlineWords;
        place.hidden = !told;
        place.dataset.kind = connection === "lost" ? "lost" : "offline";
        setText(words, told ?? "");
    };
}

const lostWords = "You're offline — your message will be sent when we're back";
// The service's sentence promises that one can keep chatting, which is not so where the limit was reached before.
const gateWords = "I can't look up your plan right now. I'll try again in a moment.";
