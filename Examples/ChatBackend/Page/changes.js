// The stream of changes: usage, and whether Headroom and the chat backend can be reached.

/** For how long a stream may be broken before somebody is told: most are back before anyone would notice. */
const patience_ms = 400;
const retryPause_ms = 1000;

export class Changes {
    #address;
    #handlers;
    #source = null;
    #telling = null;
    #retrying = null;

    /** `handlers`: `usage(usage)`, `offline(words)`, `online()`, `opened()` and `lost()`. */
    constructor(address, handlers) {
        this.#address = address;
        this.#handlers = handlers;
        // The browser knows earlier than a connection that nothing is sent on.
        window.addEventListener("offline", () => this.#isLost());
        window.addEventListener("online", () => this.isOpen && this.open());
    }

    get isOpen() {
        return this.#source !== null;
    }

    close() {
        clearTimeout(this.#retrying);
        clearTimeout(this.#telling);
        this.#telling = null;
        this.#source?.close();
        this.#source = null;
    }

    open() {
        clearTimeout(this.#retrying);
        this.#source?.close();
        const source = new EventSource(this.#address);
        this.#source = source;
        source.addEventListener("open", () => {
            clearTimeout(this.#telling);
            this.#telling = null;
            this.#handlers.opened();
        });
        source.addEventListener("error", () => {
            this.#telling ??= setTimeout(() => this.#isLost(), patience_ms);
            // A refusal ends an EventSource for good; a broken connection it opens again by itself.
            if (source.readyState === EventSource.CLOSED) {
                clearTimeout(this.#retrying);
                this.#retrying = setTimeout(() => this.open(), retryPause_ms);
            }
        });
        source.addEventListener("usage", (event) => this.#handlers.usage(JSON.parse(event.data)));
        source.addEventListener("offline", (event) => this.#handlers.offline(JSON.parse(event.data).message));
        source.addEventListener("online", () => this.#handlers.online());
    }

    #isLost() {
        clearTimeout(this.#telling);
        this.#telling = null;
        this.#handlers.lost();
    }
}
