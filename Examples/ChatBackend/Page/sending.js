// Sends what is in the outbox, one message after the other, and decides what becomes of one that was not sent.

import { deliver } from "./delivery.js";
import * as outbox from "./outbox.js";

/** Before asking again where nothing tells when that would help. */
const retryPause_ms = 1000;
/** The answer may have come to its end just then, so at first nothing is said of what became of the message. */
const stoppedWords = "Stopped.";
const givenBackWords = "Stopped. I gave this message back.";

export class Sending {
    #store;
    #service;
    #usage;
    #keeping;
    #onSettled;
    #stopping = null;
    #retrying = {};

    /**
     * `onSettled(isUncertain)` is called when no message is under way any more; what became of it may have to be read
     * in the conversation.
     */
    constructor({ store, service, usage, keeping, onSettled }) {
        this.#store = store;
        this.#service = service;
        this.#usage = usage;
        this.#keeping = keeping;
        this.#onSettled = onSettled;
    }

    add(text) {
        // Who goes on writing has seen that the one before was stopped.
        const isOver = (message) => message.reason === "stopped" && message.waitsFor === "person";
        for (const message of this.#outbox.filter(isOver)) this.#remove(message.id);
        this.#keep(outbox.add(this.#outbox, { id: crypto.randomUUID(), text, writtenAt_ms: Date.now() }));
        this.pump();
    }

    retry(id) {
        this.#keep(outbox.changed(this.#outbox, id, { waitsFor: null, reason: null, words: null, partial: null }));
        this.pump();
    }

    /** Takes a message out that is not sent; returns its text. */
    takeBack(id) {
        const message = this.#outbox.find((each) => each.id === id);
        this.#remove(id);
        this.pump();
        return message?.text ?? "";
    }

    stop() {
        this.#stopping?.abort();
    }

    /** What messages waited for has come. */
    wake(reason) {
        // What was given up in another window is not sent by this one.
        this.#store.update({ outbox: outbox.following(this.#outbox, this.#keeping.waiting()) });
        const next = outbox.awake(this.#outbox, reason);
        if (next !== this.#outbox) this.#keep(next);
        this.pump();
    }

    /** Another window keeps something else of a message now, or null of it. */
    changedElsewhere(id, kept) {
        const isGivenUp = !kept || kept.waitsFor === "person";
        if (id === this.#answering?.id) {
            // Asked for here because it was under way there: whoever gave it up means this one too.
            if (isGivenUp) this.stop();
            return;
        }
        const own = this.#outbox.find((message) => message.id === id);
        // Both windows are about to send it. It is answered once.
        if (own?.waitsFor === null && !isGivenUp) return;
        const next = kept ? outbox.placed(this.#outbox, kept) : outbox.without(this.#outbox, id);
        this.#store.update({ outbox: next });
        this.#keeping.keepUnderWay(next);
        // The other window may be closed before it comes to its end.
        if (kept?.waitsFor === "elsewhere") this.#retryLater("elsewhere");
        this.pump();
    }

    /** The conversation was read: these are in it. */
    foundSent(ids) {
        for (const message of this.#outbox) {
            if (message.id !== this.#answering?.id && ids.has(message.id)) this.#remove(message.id);
        }
        const isGivenBack = (message) => message.reason === "stopped" && message.words === stoppedWords;
        for (const { id } of this.#outbox.filter(isGivenBack)) {
            this.#wait({ id }, { words: givenBackWords });
            this.#store.update({ announcement: { words: givenBackWords } });
        }
    }

    pump() {
        if (this.#answering || !this.#store.state.hasLoaded) return;
        const message = outbox.next(this.#outbox);
        if (!message) return;
        if (this.#store.state.connection === "lost") return this.#wait(message, { waitsFor: "connection" });
        void this.#send(message);
    }

    async #send(message) {
        const wasKept = this.#keeping.find(message.id) !== null;
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
        const isDecided = outcome.kind !== "sent" && this.#isDecidedElsewhere(message, wasKept);
        this.#settle(message, outcome, isDecided);
        this.#onSettled(isDecided || outcome.kind === "stopped");
        this.pump();
    }

    /** Whether another window has given up, meanwhile, what was not sent here. */
    #isDecidedElsewhere({ id }, wasKept) {
        const kept = this.#keeping.find(id);
        return kept ? kept.waitsFor === "person" : wasKept;
    }

    #settle(message, outcome, isDecided) {
        const partial = this.#answering.answer;
        this.#stopping = null;
        this.#store.update({ answering: null });
        if (outcome.kind === "sent") return this.#sent(message, outcome);
        if (outcome.kind === "blocked") this.#usage.settled(message.id, outcome.usage);
        else this.#usage.givenBack(message.id);
        if (isDecided) return this.changedElsewhere(message.id, this.#keeping.find(message.id));
        const waitsFor = outbox.waitsAfter(outcome);
        const isOwnChoice = outcome.kind === "stopped";
        const words = isOwnChoice ? stoppedWords : outcome.words;
        const changes = { waitsFor, reason: outcome.kind, words: words ?? null, partial: isOwnChoice ? partial : null };
        this.#wait(message, changes);
        this.#retryLater(waitsFor);
        // What became of one that was stopped is told when that is known.
        if (waitsFor !== "person" || isOwnChoice) return;
        this.#store.update({ announcement: { words: words || "That message was not sent." } });
    }

    #sent(message, { message: answer, usage }) {
        const said = { id: message.id, role: "user", text: message.text };
        const messages = this.#store.state.messages.filter((each) => each.id !== said.id && each.id !== answer.id);
        this.#store.update({ messages: [...messages, said, answer], announcement: { words: answer.text } });
        this.#remove(message.id);
        this.#usage.settled(message.id, usage);
    }

    /** For what nothing tells: one failure need not mean that something is away, so nothing may come back. */
    #retryLater(waitsFor) {
        if (!["connection", "headroom", "elsewhere"].includes(waitsFor)) return;
        clearTimeout(this.#retrying[waitsFor]);
        this.#retrying[waitsFor] = setTimeout(() => {
            const { connection, offlineWords } = this.#store.state;
            if (waitsFor === "elsewhere") {
                // Without a connection it cannot be asked for. It goes on waiting for the other window, which may have
                // one: to wait for the connection instead would be written over what the other window decides.
                if (connection === "lost") this.#retryLater(waitsFor);
                else this.wake(waitsFor);
            } else if (connection === "open" && (waitsFor === "connection" || !offlineWords)) {
                this.wake(waitsFor);
            }
        }, retryPause_ms);
    }

    #wait(message, changes) {
        this.#keep(outbox.changed(this.#outbox, message.id, changes));
    }

    #keep(next) {
        const before = this.#outbox;
        this.#store.update({ outbox: next });
        this.#keeping.keep(next, before);
    }

    #remove(id) {
        this.#keep(outbox.without(this.#outbox, id));
        this.#keeping.remove(id);
    }

    get #outbox() {
        return this.#store.state.outbox;
    }

    get #answering() {
        return this.#store.state.answering;
    }
}
