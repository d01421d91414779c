// Text is only ever set as text, so nothing that a user or a model writes becomes markup.

export function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key === "onclick") made.addEventListener("click", value);
        else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
}

/**
 * Shows a text, or hides the element without one. An unchanged text stays: screen readers would repeat a new one. `lang` is
 * the language of a sentence of the service, without which a screen reader would pronounce it as the page's.
 */
export function showText(target, text, lang) {
    target.hidden = !text;
    if (text && lang) target.lang = lang;
    else target.removeAttribute("lang");
    if (target.textContent !== (text ?? "")) target.textContent = text ?? "";
}

/** Opens a dialog with the focus on its title, so that a screen reader starts there. */
export function openDialog(dialog) {
    if (dialog.open) return;
    dialog.showModal();
    dialog.querySelector("h2").focus();
}
