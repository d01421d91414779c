// What was said, what is being said, and what waits to be sent.

import { element, icon, setText } from "./element.js";

const waitingWords = {
    others: "I'll send this next.",
    connection: "I'll send this when we're back.",
    headroom: "I'll send this as soon as I can look up your plan.",
    elsewhere: "Still on its way…",
    allowance: "I've kept this, and will send it as soon as you're back.",
};
const failedWords = "That didn't work, and nothing was counted.";

export function makeConversation(log, { chat, composer }) {
    const shown = new Map();

    return function show(state) {
        const wasAtEnd = isAtEnd();
        const entries = entriesOf(state);
        const keys = new Set(entries.map((entry) => entry.key));
        for (const [key, article] of shown) {
            if (keys.has(key)) continue;
            article.element.remove();
            shown.delete(key);
        }
        let isNew = false;
        entries.forEach((entry, index) => {
            let article = shown.get(entry.key);
            if (!article) {
                article = makeArticle(entry, { chat, composer });
                shown.set(entry.key, article);
                isNew ||= entry.role === "user";
            }
            if (log.children[index] !== article.element) log.insertBefore(article.element, log.children[index] ?? null);
            article.show(entry);
        });
        // Who reads what was said before is not taken away from it by an answer that grows.
        if (wasAtEnd || isNew) scrollTo({ top: document.documentElement.scrollHeight });
    };
}

/** An answer is known by what it answers, so that it stays the same element from its first piece on. */
function entriesOf({ messages, answering, outbox, description }) {
    const entries = [];
    let question = null;
    for (const { id, role, text } of messages) {
        if (role === "user") question = id;
        entries.push({ key: role === "user" ? `said:${id}` : `answer:${question ?? id}`, role, text });
    }
    if (answering) {
        const { id, text, answer, isHeld } = answering;
        entries.push({ key: `said:${id}`, role: "user", text, isSending: !isHeld });
        entries.push({ key: `answer:${id}`, role: "assistant", text: answer, isGrowing: true });
    }
    for (const message of outbox) {
        // The gate shows what waits for it.
        if (message.id === answering?.id || (description.gate && message.waitsFor === "allowance")) continue;
        const words = waitingWords[message.waitsFor ?? "others"] ?? (message.words || failedWords);
        const kept = { id: message.id, words, waitsFor: message.waitsFor };
        entries.push({ key: `said:${message.id}`, role: "user", text: message.text, kept });
        if (!message.partial) continue;
        entries.push({ key: `answer:${message.id}`, role: "assistant", text: message.partial, isStopped: true });
    }
    return entries;
}

function makeArticle({ role }, { chat, composer }) {
    const text = element("div", { class: "text" });
    const speaker = element("span", { class: "unseen" }, role === "user" ? "You said: " : "Hearth said: ");
    const body = element("div", { class: "bubble" }, speaker, text);
    const article = element("article", { class: `message ${role}` }, body);
    if (role !== "user") article.prepend(element("span", { class: "speaker" }, icon("hearth")));
    let note = null;

    function show(entry) {
        showText(text, entry);
        article.classList.toggle("sending", Boolean(entry.isSending || entry.kept));
        article.classList.toggle("stopped", Boolean(entry.isStopped));
        article.setAttribute("aria-busy", String(Boolean(entry.isGrowing)));
        const noteKey = entry.kept ? JSON.stringify(entry.kept) : "";
        if ((note?.key ?? "") === noteKey) return;
        note?.element.remove();
        note = entry.kept ? { key: noteKey, element: makeNote(entry.kept, { chat, composer }) } : null;
        if (note) article.append(note.element);
    }
    return { element: article, show };
}

function showText(target, { text, isGrowing }) {
    if (isGrowing && !text) {
        if (!target.querySelector(".thinking")) {
            const attributes = { class: "thinking", role: "img", "aria-label": "Thinking" };
            target.replaceChildren(element("span", attributes, dot(), dot(), dot()));
        }
        return;
    }
    target.querySelector(".thinking")?.remove();
    const paragraphs = text.split(/\n{2,}/);
    while (target.children.length > paragraphs.length) target.lastChild.remove();
    paragraphs.forEach((words, index) => {
        if (!target.children[index]) target.append(element("p", {}));
        setText(target.children[index], words);
    });
}

function dot() {
    return element("i", {});
}

function makeNote({ id, words, waitsFor }, { chat, composer }) {
    const isForPerson = waitsFor === "person";
    const edit = () => composer.take(chat.takeBack(id));
    const button = (label, onclick) => element("button", { type: "button", class: "plain", onclick }, label);
    return element(
        "div",
        { class: "note" },
        element("p", {}, icon("waiting"), words),
        isForPerson ? button("Try again", () => chat.retry(id)) : null,
        // Whoever sends it can stop it.
        waitsFor === "elsewhere" ? null : button(isForPerson ? "Edit" : "Take back", edit),
    );
}

function isAtEnd() {
    const page = document.documentElement;
    return page.scrollHeight - page.clientHeight - page.scrollTop < 120;
}
