// Sends what is in the outbox, one message after the other, and decides what becomes of one that was not sent.

import { deliver } from "./delivery.js";
import * as outbox from "./outbox.js";

/** Before asking again where nothing tells when that would help. */
const retryPause_ms = 1000;

export class Sending {
    #store;
    #service;
    #usage;
    #keeping;
    #onSettled;
    #stopping = null;

    /** `onSettled` is called when no message is under way any more. */
    constructor({ store, service, usage, keeping, onSettled }) {
        this.#store = store;
        this.#service = service;
        this.#usage = usage;
        this.#keeping = keeping;
        this.#onSettled = onSettled;
    }

    add(text) {
        // Who goes on writing has seen that the one before was stopped.
        const kept = this.#outbox.filter((message) => message.reason !== "stopped");
        this.#keep(outbox.add(kept, { id: crypto.randomUUID(), text }));
        this.pump();
    }

    retry(id) {
        this.#keep(outbox.changed(this.#outbox, id, { waitsFor: null, reason: null, words: null, partial: null }));
        this.pump();
    }

    /** Takes a message out that is not sent; returns its text. */
    takeBack(id) {
        const message = this.#outbox.find((each) => each.id === id);
        this.#keep(outbox.without(this.#outbox, id));
        this.pump();
        return message?.text ?? "";
    }

    stop() {
        this.#stopping?.abort();
    }

    /** What messages waited for has come. */
    wake(reason) {
        const next = outbox.awake(this.#outbox, reason);
        if (next !== this.#outbox) this.#keep(next);
        this.pump();
    }

    /** Another window keeps other messages now: those that it sends are not this one's any more. */
    keptElsewhere(waiting) {
        const ids = new Set(waiting.map((message) => message.id));
        const isOurs = (message) => message.waitsFor === null || ids.has(message.id);
        const known = this.#outbox.filter(isOurs);
        const knownIDs = new Set(known.map((message) => message.id));
        this.#store.update({ outbox: [...known, ...waiting.filter((message) => !knownIDs.has(message.id))] });
    }

    /** These are in the conversation already. */
    foundSent(ids) {
        const left = this.#outbox.filter((message) => message.id === this.#answering?.id || !ids.has(message.id));
        if (left.length !== this.#outbox.length) this.#keep(left);
    }

    pump() {
        if (this.#answering || !this.#store.state.hasLoaded) return;
        const message = outbox.next(this.#outbox);
        if (!message) return;
        if (this.#store.state.connection === "lost") return this.#wait(message, { waitsFor: "connection" });
        void this.#send(message);
    }

    async #send(message) {
        this.#stopping = new AbortController();
        this.#store.update({ answering: { id: message.id, text: message.text, answer: "", isHeld: false } });
        this.#usage.pressed(message.id);
        const outcome = await deliver(this.#service, message, this.#stopping.signal, {
            onHeld: (usage) => {
                this.#usage.held(message.id, usage);
                this.#store.update({ answering: { ...this.#answering, isHeld: true } });
            },
            onPiece: (text) => {
                const answer = this.#answering.answer + text;
                this.#store.update({ answering: { ...this.#answering, answer } });
            },
        });
        this.#settle(message, outcome);
        this.#onSettled();
        this.pump();
    }

    #settle(message, outcome) {
        const partial = this.#answering.answer;
        this.#stopping = null;
        this.#store.update({ answering: null });
        if (outcome.kind === "sent") return this.#sent(message, outcome);
        const waitsFor = outbox.waitsAfter(outcome);
        const isOwnChoice = outcome.kind === "stopped";
        const words = isOwnChoice ? "Stopped. I gave this message back." : outcome.words;
        const changes = { waitsFor, reason: outcome.kind, words: words ?? null, partial: isOwnChoice ? partial : null };
        this.#wait(message, changes);
        if (outcome.kind === "blocked") return this.#usage.settled(message.id, outcome.usage);
        this.#usage.givenBack(message.id);
        this.#retryLater(waitsFor);
        if (waitsFor !== "person") return;
        this.#store.update({ announcement: { words: words || "That message was not sent." } });
    }

    #sent(message, { message: answer, usage }) {
        const said = { id: message.id, role: "user", text: message.text };
        const messages = this.#store.state.messages.filter((each) => each.id !== said.id && each.id !== answer.id);
        this.#store.update({ messages: [...messages, said, answer], announcement: { words: answer.text } });
        this.#keep(outbox.without(this.#outbox, message.id));
        this.#usage.settled(message.id, usage);
    }

    /** For what nothing tells: one failure need not mean that something is away, so nothing may come back. */
    #retryLater(waitsFor) {
        if (!["connection", "headroom", "elsewhere"].includes(waitsFor)) return;
        setTimeout(() => {
            const { connection, offlineWords } = this.#store.state;
            if (waitsFor === "elsewhere" || (connection === "open" && (waitsFor === "connection" || !offlineWords))) {
                this.wake(waitsFor);
            }
        }, retryPause_ms);
    }

    #wait(message, changes) {
        this.#keep(outbox.changed(this.#outbox, message.id, changes));
    }

    #keep(next) {
        this.#store.update({ outbox: next });
        this.#keeping.keep(next);
    }

    get #outbox() {
        return this.#store.state.outbox;
    }

    get #answering() {
        return this.#store.state.answering;
    }
}
