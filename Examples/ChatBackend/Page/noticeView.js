// What the service says about the subscription, above the conversation.

import { element, icon, setText } from "./element.js";

export function makeNotice(notice, chat) {
    const words = element("p", {});
    const choose = element("button", { type: "button", class: "plain" });
    const picture = element("span", { class: "picture" });
    notice.append(picture, words, choose);

    let choice = null;
    choose.addEventListener("click", () => {
        if (choose.getAttribute("aria-disabled") !== "true") chat.changeSubscription(choice.action, choice.plan);
    });

    return function show({ description, subscribing, canSubscribe }) {
        const told = description.notice;
        notice.hidden = told === null;
        if (!told) return;
        if (notice.dataset.tone !== told.tone) {
            picture.replaceChildren(icon(told.tone === "urgent" ? "card" : "calendar"));
        }
        notice.dataset.tone = told.tone;
        choice = told.choice;
        setText(words, told.words);
        setText(choose, choice.label);
        choose.setAttribute("aria-disabled", String(subscribing !== null));
        // The gate offers the same, larger.
        choose.hidden = !canSubscribe || description.gate?.choice.action === choice.action;
    };
}
