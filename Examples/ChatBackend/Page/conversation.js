// The conversation: past messages, the answer under way, and messages that wait to be sent.

import { element } from "./element.js";
import { isBlocked } from "./usage.js";

export function makeConversation(log, chat, composer) {
    let articles = new Map();

    return function show(state) {
        const page = document.documentElement;
        const wasAtEnd = page.scrollHeight - page.clientHeight - page.scrollTop < 120;
        const countBefore = log.children.length;
        // An entry that has not changed keeps its element, and with it the focus and the selection.
        const next = new Map();
        for (const entry of entriesOf(state)) {
            const key = JSON.stringify(entry);
            next.set(key, articles.get(key) ?? makeArticle(entry, chat, composer));
        }
        articles = next;
        [...articles.values()].forEach((article, index) => {
            if (log.children[index] !== article) log.insertBefore(article, log.children[index] ?? null);
        });
        while (log.children.length > articles.size) log.lastChild.remove();
        // A user who reads older messages is not interrupted by a growing answer.
        if (wasAtEnd || log.children.length > countBefore) scrollTo({ top: page.scrollHeight });
    };
}

function entriesOf(state) {
    const { messages, answering, outbox } = state;
    const entries = [...messages];
    if (answering) {
        entries.push({ id: answering.id, role: "user", text: answering.text });
        entries.push({ id: `${answering.id}-answer`, role: "assistant", text: answering.answer, isGrowing: true });
    }
    for (const { id, text, failure } of outbox) {
        if (id === answering?.id) continue;
        entries.push({ id, role: "user", text, note: failure ?? waitingText(state), canRetry: failure !== null });
    }
    return entries;
}

function waitingText({ isConnected, usage, offlineMessage }) {
    if (!isConnected) return "I'll send this when we're back.";
    if (isBlocked(usage)) return "I've kept this, and will send it as soon as you're back.";
    return offlineMessage ? "I'll send this as soon as I can look up your plan." : "I'll send this next.";
}

function makeArticle({ id, role, text, isGrowing, note, canRetry }, chat, composer) {
    const body = isGrowing && !text
        ? element("span", { class: "thinking", role: "img", "aria-label": "Thinking" }, "…")
        : element("div", { class: "text" }, text);
    const speaker = element("span", { class: "unseen" }, role === "user" ? "You said: " : "Hearth said: ");
    const attributes = { class: `message ${role}${note ? " sending" : ""}`, "aria-busy": String(Boolean(isGrowing)) };
    const article = element("article", attributes, element("div", { class: "bubble" }, speaker, body));
    if (!note) return article;
    const button = (label, onclick) => element("button", { type: "button", class: "plain", onclick }, label);
    const buttons = [button(canRetry ? "Edit" : "Take back", () => composer.edit(chat.takeBack(id)))];
    if (canRetry) buttons.unshift(button("Try again", () => chat.retry(id)));
    article.append(element("div", { class: "note" }, element("p", {}, note), ...buttons));
    return article;
}
