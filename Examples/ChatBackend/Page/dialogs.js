// What all dialogs have in common: a heading, a way out by button, Escape and a click beside them. The browser brings
// the focus back to where it was.

import { element, icon } from "./element.js";

/** Fills a dialog of index.html. Returns its heading and the part below it. */
export function fillDialog(dialog, title) {
    const heading = element("h2", { id: `${dialog.id}-title`, tabindex: "-1" }, title);
    const attributes = { type: "button", class: "round", "aria-label": "Close", onclick: () => dialog.close() };
    const close = element("button", attributes, icon("close"));
    const content = element("div", { class: "dialog-content" });
    dialog.append(element("div", { class: "dialog-head" }, heading, close), content);
    dialog.addEventListener("click", (event) => {
        if (event.target === dialog) dialog.close();
    });
    return { heading, content };
}

export function openDialog(dialog) {
    if (dialog.open) return;
    dialog.showModal();
    // Read the name first, and not "Close".
    dialog.querySelector("h2").focus();
}
