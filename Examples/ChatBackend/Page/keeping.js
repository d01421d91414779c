// What outlives a reload: messages that are not sent yet, and what is being written.
//
// What waits is kept for all windows of the user; what is under way for its window alone, so that no other sends it
// too.

export class Keeping {
    #waiting;
    #underWay;
    #draft;

    constructor(user) {
        this.#waiting = `hearth.waiting.${user}`;
        this.#underWay = `hearth.under-way.${user}`;
        this.#draft = `hearth.draft.${user}`;
    }

    /** The messages that were there when the window was closed or loaded anew. */
    load() {
        const underWay = read(sessionStorage, this.#underWay, []);
        const ids = new Set(underWay.map((message) => message.id));
        return [...underWay, ...this.waiting().filter((message) => !ids.has(message.id))];
    }

    waiting() {
        return read(localStorage, this.#waiting, []);
    }

    keep(outbox) {
        const waiting = outbox.filter((message) => message.waitsFor !== null);
        write(localStorage, this.#waiting, waiting);
        write(sessionStorage, this.#underWay, outbox.filter((message) => message.waitsFor === null));
    }

    /** Calls back when another window has kept something else. */
    onChangeElsewhere(listener) {
        window.addEventListener("storage", (event) => {
            if (event.key === this.#waiting) listener(this.waiting());
        });
    }

    get draft() {
        return read(sessionStorage, this.#draft, "");
    }

    set draft(text) {
        write(sessionStorage, this.#draft, text);
    }
}

function read(storage, name, otherwise) {
    try {
        return JSON.parse(storage.getItem(name)) ?? otherwise;
    } catch {
        return otherwise;
    }
}

function write(storage, name, value) {
    try {
        if (value.length) storage.setItem(name, JSON.stringify(value));
        else storage.removeItem(name);
    } catch {
        // Full, or forbidden: then it lasts as long as the window.
    }
}
