// What outlives a reload: messages that are not sent yet, and what is being written.
//
// What waits is kept for all windows of the user, each message by itself: windows write at the same time, and none may
// write over what another keeps. It goes only when somebody says so, because it was sent or taken back. What was never
// kept waiting and is under way belongs to its window alone.

import { inOrder } from "./outbox.js";

export class Keeping {
    #prefix;
    #underWay;
    #draft;
    /** Messages that the browser would not keep, by id: its storage is full, or forbidden. */
    #unwritten = new Map();

    constructor(user) {
        this.#prefix = `hearth.waiting.${user}.`;
        this.#underWay = `hearth.under-way.${user}`;
        this.#draft = `hearth.draft.${user}`;
    }

    /** The messages that were there when the window was closed or loaded anew. */
    load() {
        const waiting = this.waiting();
        const others = new Map(waiting.map((message) => [message.id, message]));
        const underWay = read(sessionStorage, this.#underWay, []).filter((message) => {
            // Another window has decided about it meanwhile.
            const kept = others.get(message.id);
            return !kept || kept.waitsFor === "elsewhere";
        });
        const ids = new Set(underWay.map((message) => message.id));
        return inOrder([...underWay, ...waiting.filter((message) => !ids.has(message.id))]);
    }

    /** What all windows keep. */
    waiting() {
        const found = names(localStorage, this.#prefix).map((name) => read(localStorage, name, null));
        return inOrder([...found.filter((message) => message !== null), ...this.#unwritten.values()]);
    }

    find(id) {
        return this.#unwritten.get(id) ?? read(localStorage, this.#prefix + id, null);
    }

    /** Writes what differs from the outbox before: of the rest, another window may know better. */
    keep(outbox, before) {
        for (const message of outbox) {
            if (!before.includes(message)) this.#share(message);
        }
        this.keepUnderWay(outbox);
    }

    /** Writes what the other windows have to know of a message. */
    #share(message) {
        const kept = this.find(message.id);
        if (message.waitsFor === null && !kept) return;
        // Under way here, for the others it is "elsewhere", and theirs again if this window does not come to its end.
        const waitsFor = message.waitsFor ?? "elsewhere";
        // A window sees what another has written a moment late. One that asks again and again for what another sends
        // would write over the other's decision in that moment, so it does not write what it already reads.
        const isWritten = kept !== null && !this.#unwritten.has(message.id);
        if (waitsFor === "elsewhere" && isWritten && kept.waitsFor === "elsewhere") return;
        this.#put({ ...message, waitsFor });
    }

    keepUnderWay(outbox) {
        const underWay = outbox.filter((message) => message.waitsFor === null);
        write(sessionStorage, this.#underWay, underWay.length ? JSON.stringify(underWay) : null);
    }

    remove(id) {
        this.#unwritten.delete(id);
        write(localStorage, this.#prefix + id, null);
    }

    /** Calls back with a message's id, and with what another window keeps of it now: null when it has removed it. */
    onChangeElsewhere(listener) {
        window.addEventListener("storage", ({ key, storageArea }) => {
            if (storageArea !== localStorage || !key?.startsWith(this.#prefix)) return;
            const id = key.slice(this.#prefix.length);
            // Not what the event carries: the newest is what counts.
            listener(id, this.find(id));
        });
    }

    get draft() {
        return read(sessionStorage, this.#draft, "");
    }

    set draft(text) {
        write(sessionStorage, this.#draft, text ? JSON.stringify(text) : null);
    }

    #put(message) {
        const isWritten = write(localStorage, this.#prefix + message.id, JSON.stringify(message));
        if (isWritten) this.#unwritten.delete(message.id);
        // Then it lasts as long as the window.
        else this.#unwritten.set(message.id, message);
    }
}

function names(storage, prefix) {
    try {
        return Object.keys(storage).filter((name) => name.startsWith(prefix));
    } catch {
        return [];
    }
}

function read(storage, name, otherwise) {
    try {
        return JSON.parse(storage.getItem(name)) ?? otherwise;
    } catch {
        return otherwise;
    }
}

/** Whether the storage took it; null removes. */
function write(storage, name, text) {
    try {
        if (text === null) storage.removeItem(name);
        else storage.setItem(name, text);
        return true;
    } catch {
        return false;
    }
}
