// Who is chatting, and the way to plan and usage.

import { fillDialog, openDialog } from "./dialogs.js";
import { element, icon, setText } from "./element.js";
import { makeRing } from "./ring.js";

export function makeSettings(dialog, opener, openDetails) {
    const { content } = fillDialog(dialog, "Settings");
    const initial = element("span", { class: "initial", "aria-hidden": "true" });
    const name = element("strong", {});
    const ring = makeRing();
    const label = element("span", { class: "about" });
    const share = element("span", { class: "share" });
    const usage = element(
        "button",
        { type: "button", class: "row", id: "plan-and-usage", "aria-haspopup": "dialog", onclick: openDetails },
        ring.element,
        element("span", { class: "row-words" }, element("strong", {}, "Plan and usage"), label),
        share,
        icon("next"),
    );
    const others = element(
        "a",
        { class: "row", href: "/" },
        icon("person"),
        element("span", { class: "row-words" }, element("strong", {}, "Come in as somebody else")),
        icon("next"),
    );
    content.append(element("p", { class: "profile" }, initial, name), element("div", { class: "rows" }, usage, others));
    opener.addEventListener("click", () => openDialog(dialog));

    return function show({ description, name: who }) {
        setText(initial, who.slice(0, 1));
        setText(name, who);
        ring.show(description.ring, description.tier);
        setText(label, description.details?.label ?? "I can't see it right now");
        setText(share, description.ring?.words ?? "");
    };
}
