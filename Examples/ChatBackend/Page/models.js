// The choice of a model, with what is left of each.

import { element, showText } from "./element.js";
import { leftText } from "./usage.js";

export function makeModels(group, chat) {
    let shown = "";
    group.addEventListener("change", ({ target }) => chat.pick(target.value));

    return function show({ models, model, usage }) {
        group.hidden = models.length < 2;
        // The same choices keep their elements, and with them the focus.
        const offered = JSON.stringify(models);
        if (offered !== shown) group.replaceChildren(group.querySelector("legend"), ...models.map(makeChoice));
        shown = offered;
        for (const choice of group.querySelectorAll("label")) {
            const input = choice.querySelector("input");
            input.checked = input.value === model;
            showText(choice.querySelector(".left"), leftText(usage?.models?.[input.value]));
        }
    };
}

function makeChoice({ name, label }) {
    const input = element("input", { type: "radio", name: "model", value: name, class: "unseen" });
    return element("label", {}, input, element("span", {}, label), " ", element("span", { class: "left" }));
}
