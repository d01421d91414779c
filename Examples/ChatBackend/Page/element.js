// Makes elements. Text is only ever set as text, so nothing that a person or a model writes becomes markup.

export function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
        else if (value === true) made.setAttribute(key, "");
        else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
}

const drawings = "http://www.w3.org/2000/svg";

export function drawing(name, attributes, ...children) {
    const made = document.createElementNS(drawings, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
}

/** One of the symbols of index.html, as an ornament: what it means stands beside it. */
export function icon(name) {
    return drawing("svg", { "aria-hidden": "true", class: "icon" }, drawing("use", { href: `#icon-${name}` }));
}

/** Sets a text only where it differs, so that nothing that reads along reads it twice. */
export function setText(target, text) {
    if (target.textContent !== text) target.textContent = text;
}
