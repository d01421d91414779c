// Requests to the chat backend.

/** The backend answered with an error. */
export class ServiceError extends Error {
    constructor(status, { code = "", message = "" } = {}) {
        super(message);
        this.status = status;
        this.code = code;
    }
}

export class Service {
    #base;

    constructor(user) {
        this.#base = `/users/${user}`;
    }

    /** With the time zone in which sentences say dates. The browser sends the language by itself. */
    #address(path = "") {
        const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
        return `${this.#base}${path}?${new URLSearchParams({ tz: timeZone })}`;
    }

    /** The address of the stream of changes. */
    get changesAddress() {
        return this.#address("/changes");
    }

    /** Name, messages and usage. */
    async page() {
        const response = await checked(await fetch(this.#address(), { cache: "no-store" }));
        return response.json();
    }

    /** Sends a message and yields the events of its answer: `{name, data}`. Aborting gives the message back. */
    async *send({ id, text }, model, signal) {
        const response = await this.#post("messages", { id, text, model }, signal);
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let pending = "";
        for (;;) {
            const { value, done } = await reader.read();
            if (done) return;
            const blocks = (pending + value).split("\n\n");
            pending = blocks.pop();
            for (const block of blocks) {
                const match = /^event: (.*)\ndata: (.*)$/.exec(block);
                if (match) yield { name: match[1], data: JSON.parse(match[2]) };
            }
        }
    }

    async changeSubscription(action, plan) {
        await this.#post("subscription", { action, plan });
    }

    async #post(path, body, signal) {
        const headers = { "Content-Type": "application/json" };
        const request = { method: "POST", headers, body: JSON.stringify(body), signal };
        return checked(await fetch(this.#address(`/${path}`), request));
    }
}

async function checked(response) {
    if (response.ok) return response;
    const body = await response.json().catch(() => null);
    throw new ServiceError(response.status, body?.error);
}
