// Requests to the chat backend.

/** The backend answered, and not with what was asked for. */
export class Refusal extends Error {
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

    get changesAddress() {
        return `${this.#base}/changes`;
    }

    /** Name, messages and usage. */
    async state() {
        const response = await fetch(this.#base, { cache: "no-store", headers: { Accept: "application/json" } });
        return (await checked(response)).json();
    }

    /** The answer's bytes, as they come. Aborting takes the message back. */
    async send(message, signal) {
        const response = await this.#post("messages", { id: message.id, text: message.text }, signal);
        return response.body;
    }

    /** Tells the store; what comes of it is told by a change of usage. */
    async changeSubscription(action, plan) {
        await this.#post("subscription", plan ? { action, plan } : { action });
    }

    async #post(path, body, signal) {
        const headers = { "Content-Type": "application/json" };
        const request = { method: "POST", headers, body: JSON.stringify(body), signal };
        return checked(await fetch(`${this.#base}/${path}`, request));
    }
}

async function checked(response) {
    if (response.ok) return response;
    const problem = await response.json().catch(() => null);
    throw new Refusal(response.status, problem?.error);
}
