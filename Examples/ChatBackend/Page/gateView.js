// What stands in the composer's place while nothing may be sent: the service's words, the way back, and what is kept.

import { element, setText } from "./element.js";
import { waiting } from "./outbox.js";

export function makeGate(gate, { chat, openDetails, composer }) {
    const words = element("h2", { id: "gate-words" });
    const keptWords = element("p", {});
    const keptText = element("blockquote", {});
    const giveUp = element("button", { type: "button", class: "plain", id: "give-up", hidden: true }, "Take back");
    const kept = element("div", { class: "kept", hidden: true }, keptWords, keptText, giveUp);
    const choose = element("button", { type: "button", class: "primary", id: "subscribe" });
    const attributes = { type: "button", class: "plain", id: "gate-details", "aria-haspopup": "dialog" };
    const details = element("button", attributes, "See details");
    const problem = element("p", { class: "problem", role: "alert", hidden: true });
    const restore = element("button", { type: "button", class: "plain", id: "gate-restore", hidden: true });
    const outcome = element("p", { class: "outcome", role: "status", hidden: true });
    restore.addEventListener("click", () => {
        if (restore.getAttribute("aria-disabled") !== "true") chat.restore("gate");
    });
    gate.append(words, kept, problem, element("div", { class: "gate-actions" }, choose, details, restore), outcome);

    let choice = null;
    choose.addEventListener("click", () => {
        // It keeps the focus, so it is not disabled, and pressing it again does nothing.
        if (choose.getAttribute("aria-disabled") !== "true") chat.changeSubscription(choice.action, choice.plan);
    });
    details.addEventListener("click", openDetails);

    let takable = [];
    giveUp.addEventListener("click", () => {
        // Back to what is being written, which nobody sends.
        composer.take(takable.map((message) => chat.takeBack(message.id)).join("\n\n"));
        gate.focus();
    });

    return function show(state) {
        const { description, outbox, subscribing, problem: problemWords, canSubscribe } = state;
        const isOpen = description.gate === null;
        if (isOpen !== gate.hidden) changeOver(isOpen);
        if (isOpen) return;
        choice = description.gate.choice;
        setText(words, description.gate.words);
        choose.hidden = !canSubscribe;
        setText(choose, subscribing ? "One moment…" : choice.label);
        choose.setAttribute("aria-disabled", String(subscribing !== null));
        problem.hidden = !problemWords;
        setText(problem, problemWords ?? "");
        showRestoring(state);
        takable = waiting(outbox).filter((message) => message.waitsFor !== "elsewhere");
        giveUp.hidden = takable.length === 0;
        const messages = waiting(outbox).map((message) => message.text);
        const draft = composer.text;
        kept.hidden = messages.length === 0 && draft === "";
        const manner = messages.length > 1 ? "your messages and will send them" : "your message and will send it";
        const sendingWords = `I've kept ${manner} as soon as you're back.`;
        setText(keptWords, messages.length ? sendingWords : "I've kept what you were writing.");
        setText(keptText, messages.length ? messages.join("\n") : draft);
    };

    function showRestoring({ description, canSubscribe, restoring, restored }) {
        restore.hidden = !canSubscribe || !description.gate.canRestore;
        restore.setAttribute("aria-disabled", String(restoring !== null));
        setText(restore, restoring === "gate" ? "One moment…" : "Restore purchases");
        const outcomeWords = restored?.place === "gate" ? restored.words : "";
        outcome.hidden = outcomeWords === "";
        setText(outcome, outcomeWords);
    }

    function changeOver(isOpen) {
        const leaves = isOpen ? gate : composer.element;
        const hadFocus = leaves.contains(document.activeElement);
        gate.hidden = isOpen;
        composer.element.hidden = !isOpen;
        if (!hadFocus) return;
        if (isOpen) composer.focus();
        else gate.focus();
    }
}
