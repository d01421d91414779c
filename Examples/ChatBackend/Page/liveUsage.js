// The counter with a clock: keeps it in the store, and comes back to it when waiting alone changes it.

import * as counter from "./counter.js";
import { isBlocked } from "./usageDescription.js";

export class LiveUsage {
    #store;
    #timer = null;
    #onAllowed;
    /** How often answers to messages, and all together, have said where the user stands. */
    answers = 0;
    heard = 0;

    /** `onAllowed` is called when the server has said something by which messages may be sent. */
    constructor(store, onAllowed) {
        this.#store = store;
        this.#onAllowed = onAllowed;
    }

    /** What the server said last; null before it has. */
    get usage() {
        return this.#store.state.counter.usage;
    }

    pressed(id) {
        this.#keep(counter.pressed(this.#counter, id));
    }

    held(id, usage) {
        this.#hears({ isAnswer: true });
        this.#keep(counter.held(this.#counter, id, usage, performance.now()));
    }

    settled(id, usage) {
        this.#hears({ isAnswer: true });
        this.#keep(counter.settled(this.#counter, id, usage, performance.now()));
    }

    givenBack(id) {
        this.#keep(counter.givenBack(this.#counter, id, performance.now()));
    }

    told(usage) {
        this.#hears({ isAnswer: false });
        this.#keep(counter.told(this.#counter, usage, performance.now()));
    }

    #hears({ isAnswer }) {
        this.heard += 1;
        if (isAnswer) this.answers += 1;
    }

    get #counter() {
        return this.#store.state.counter;
    }

    #keep(next) {
        const isNews = next.usage !== this.#counter.usage;
        this.#store.update({ counter: next });
        clearTimeout(this.#timer);
        const due_ms = counter.waitsUntil_ms(next);
        if (due_ms !== null) {
            const wait = () => this.#keep(counter.afterWaiting(this.#counter, performance.now()));
            this.#timer = setTimeout(wait, Math.max(1, due_ms - performance.now()));
        }
        if (isNews && !isBlocked(next.usage)) this.#onAllowed();
    }
}
