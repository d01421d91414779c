// Who is chatting, the way to plan and usage, and restoring what was bought.

import { fillDialog, openDialog } from "./dialogs.js";
import { element, icon, setText } from "./element.js";
import { makeRing } from "./ring.js";
import { detailsFailed } from "./screenWords.js";

export function makeSettings(dialog, opener, { chat, openDetails }) {
    const { content } = fillDialog(dialog, "Settings");
    const initial = element("span", { class: "initial", "aria-hidden": "true" });
    const name = element("strong", {});
    const ring = makeRing();
    const label = element("span", { class: "about" });
    const used = element("span", { class: "about used" });
    const usage = element(
        "button",
        { type: "button", class: "row", id: "plan-and-usage", "aria-haspopup": "dialog", onclick: openDetails },
        ring.element,
        element("span", { class: "row-words" }, element("strong", {}, "Plan and usage"), label, used),
        icon("next"),
    );
    const restoring = element("span", { class: "about" });
    const restore = element(
        "button",
        { type: "button", class: "row", id: "restore", hidden: true },
        icon("card"),
        element("span", { class: "row-words" }, element("strong", {}, "Restore purchases"), restoring),
        icon("next"),
    );
    restore.addEventListener("click", () => {
        if (restore.getAttribute("aria-disabled") !== "true") chat.restore("settings");
    });
    const outcome = element("p", { class: "outcome", role: "status", hidden: true });
    const others = element(
        "a",
        { class: "row", href: "/" },
        icon("person"),
        element("span", { class: "row-words" }, element("strong", {}, "Come in as somebody else")),
        icon("next"),
    );
    const rows = element("div", { class: "rows" }, usage, restore, others);
    content.append(element("p", { class: "profile" }, initial, name), rows, outcome);
    dialog.addEventListener("close", () => chat.dismiss());
    opener.addEventListener("click", () => openDialog(dialog));

    return function show({ description, name: who, canSubscribe, restoring: place, restored }) {
        setText(initial, who.slice(0, 1));
        setText(name, who);
        ring.show(description.ring, description.tier);
        setText(label, description.details?.label ?? detailsFailed);
        setText(used, description.details?.usedWords ?? "");
        restore.hidden = !canSubscribe;
        restore.setAttribute("aria-disabled", String(place !== null));
        setText(restoring, place === "settings" ? "One moment…" : "Bought before, or on another device");
        const words = restored?.place === "settings" ? restored.words : "";
        outcome.hidden = words === "";
        setText(outcome, words);
    };
}
