// One user's chat: its state and what the user can do. Touches no element of the page.

import { initialState } from "./chatState.js";
import { purchaseFailure, restoreFailure, restored, stopped } from "./screenTexts.js";
import { Service, ServiceError } from "./service.js";
import { hasWindow, isBlocked, withModel } from "./usage.js";

const retryPause_ms = 1000;
const stopPause_ms = 200;
const pause = (duration_ms) => new Promise((resolve) => setTimeout(resolve, duration_ms));

export class Chat {
    state = { ...initialState };
    #service;
    #outboxKey;
    #modelKey;
    #onChange;
    #changes = null;
    #abort = null;
    #isPaused = false;
    #pauseTimer = null;
    /** Counts what the backend has sent, so that an older read does not replace it. */
    #version = 0;

    /** `onChange(state)` is called after each change. */
    constructor(user, onChange) {
        this.#service = new Service(user);
        this.#outboxKey = `hearth.outbox.${user}`;
        this.#modelKey = `hearth.model.${user}`;
        this.#onChange = onChange;
        this.state.outbox = JSON.parse(sessionStorage.getItem(this.#outboxKey) ?? "[]");
    }

    async start() {
        await this.#read();
        this.#update({ hasLoaded: true });
        document.addEventListener("visibilitychange", () => {
            this.#connect();
            if (document.visibilityState === "visible") this.#read();
        });
        this.#connect();
        setInterval(() => hasWindow(this.state.usage) && this.#read(), 60_000); // Its wait is in minutes.
        this.#sendNext();
    }

    send(text) {
        this.#update({ outbox: [...this.state.outbox, { id: crypto.randomUUID(), text, failure: null }] });
        this.#sendNext();
    }

    stop() {
        this.#abort?.abort();
    }

    retry(id) {
        this.#setFailure(id, null);
        this.#sendNext();
    }

    /** Removes a message that is not sent; returns its text. */
    takeBack(id) {
        const message = this.state.outbox.find((each) => each.id === id);
        this.#remove(id);
        this.#sendNext();
        return message?.text ?? "";
    }

    /** Chooses the model of the messages that are not sent yet and of all later ones, and goes on sending. */
    pick(model) {
        sessionStorage.setItem(this.#modelKey, model);
        this.#update({ model, usage: this.state.usage && withModel(this.state.usage, model) });
        this.#resume();
    }

    async changeSubscription(action, plan) {
        await this.#change(action, plan, {}, (error) => ({ problem: purchaseFailure(action, error) }));
    }

    /** `place` is "gate" or "settings", where the result is shown. */
    async restore(place) {
        const result = (text) => ({ restored: { place, text } });
        await this.#change("restore", undefined, result(restored), (error) => result(restoreFailure(place, error)));
    }

    /** Shows a text in the dialog; null removes it and the result of restoring. */
    setProblem(problem) {
        this.#update({ problem, restored: null });
    }

    async #change(action, plan, changed, failed) {
        if (this.state.changing) return;
        this.#update({ changing: action, problem: null, restored: null });
        const result = await this.#service.changeSubscription(action, plan).then(() => changed, failed);
        await this.#read();
        this.#update({ changing: null, ...result });
    }

    #update(changes) {
        this.state = { ...this.state, ...changes };
        if (changes.outbox) sessionStorage.setItem(this.#outboxKey, JSON.stringify(changes.outbox));
        this.#onChange(this.state);
    }

    /** Follows the changes while the window is visible: a browser has six connections to a host for all its windows. */
    #connect() {
        this.#changes?.close();
        if (document.visibilityState !== "visible") return;
        const changes = new EventSource(this.#service.changesAddress);
        this.#changes = changes;
        const on = (name, call) => changes.addEventListener(name, ({ data }) => call(data && JSON.parse(data)));
        on("open", () => {
            if (!this.state.isConnected) {
                this.#update({ isConnected: true, announcement: "We're back." });
                this.#read();
            }
            this.#resume();
        });
        on("error", () => {
            this.#update({ isConnected: false });
            // The browser reconnects after a lost connection, but not after an error status.
            if (changes.readyState === EventSource.CLOSED) setTimeout(() => this.#connect(), retryPause_ms);
        });
        on("usage", (usage) => {
            const before = this.state.usage?.used;
            this.#setUsage(usage);
            // A message was sent in another window or on another device.
            if (before !== usage.used) this.#read();
        });
        on("offline", ({ message }) => this.#update({ offlineMessage: message }));
        on("online", () => {
            this.#update({ offlineMessage: null });
            this.#resume();
        });
    }

    /** Returns whether the backend is still answering a message of the user. */
    async #read() {
        const version = this.#version;
        try {
            const page = await this.#service.page();
            const { name, messages, models, usage, offline = null, can_subscribe: canSubscribe } = page;
            // The message under way is not part of the conversation yet.
            if (this.state.answering) return true;
            if (version !== this.#version) return await this.#read();
            const outbox = this.state.outbox.filter(({ id }) => !messages.some((message) => message.id === id));
            const picked = sessionStorage.getItem(this.#modelKey);
            const { name: model } = models.find((each) => each.name === picked) ?? models[0];
            this.#update({ name, messages, models, model, outbox, canSubscribe, offlineMessage: offline });
            this.#setUsage(usage);
            return page.is_answering;
        } catch {
            // The stream of changes reports a lost connection.
            return false;
        }
    }

    #setUsage(usage) {
        if (!usage || usage.degraded) return;
        this.#version += 1;
        this.#update({ usage: withModel(usage, this.state.model) });
        this.#sendNext();
    }

    /** Sends the oldest message that nothing prevents; one at a time, so none overtakes another. */
    async #sendNext() {
        const { hasLoaded, answering, outbox, usage, isConnected } = this.state;
        const message = outbox.find((each) => !each.failure);
        if (!message || !hasLoaded || answering || !isConnected || this.#isPaused || isBlocked(usage)) return;
        this.#abort = new AbortController();
        this.#update({ answering: { ...message, answer: "" } });
        const outcome = await this.#deliver(message, this.#abort.signal);
        this.#update({ answering: null });
        await this.#settle(message, outcome);
        this.#sendNext();
    }

    /** Returns the event that ends the answer, `{name: "stopped"}`, or `{name: "lost"}`. */
    async #deliver(message, signal) {
        try {
            for await (const event of this.#service.send(message, this.state.model, signal)) {
                if (event.name === "held") {
                    this.#setUsage(event.data);
                } else if (event.name === "piece") {
                    const { answering } = this.state;
                    this.#update({ answering: { ...answering, answer: answering.answer + event.data.text } });
                } else {
                    return event;
                }
            }
        } catch (error) {
            if (signal.aborted) return { name: "stopped" };
            const isRefused = error instanceof ServiceError && error.status < 500;
            if (isRefused) return { name: "failed", data: { message: "That didn't work, and nothing was counted." } };
        }
        return { name: "lost" };
    }

    async #settle({ id, text }, { name, data }) {
        if (name === "sent") {
            this.#version += 1;
            const messages = [...this.state.messages, { id, role: "user", text }, data.message];
            this.#update({ messages, announcement: data.message.text });
            this.#remove(id);
            this.#setUsage(data.usage);
        } else if (name === "failed" && !data.can_retry) {
            this.#setFailure(id, data.message);
            // The stream of changes may skip a hold that is given back at once.
            await this.#read();
        } else if (name === "stopped") {
            // The backend gives the message back, unless its answer was complete just before. Either takes a moment.
            this.#setFailure(id, "Stopped.");
            for (let reads = 1; (await this.#read()) && reads < 50; reads += 1) await pause(stopPause_ms);
            if (this.state.outbox.some((message) => message.id === id)) this.#setFailure(id, stopped);
        } else {
            if (name === "blocked") this.#setUsage(data);
            this.#pause();
        }
    }

    /** Waits a moment, or until Headroom is reachable again. */
    #pause() {
        this.#isPaused = true;
        clearTimeout(this.#pauseTimer);
        this.#pauseTimer = setTimeout(() => this.state.offlineMessage || this.#resume(), retryPause_ms);
    }

    #resume() {
        this.#isPaused = false;
        this.#sendNext();
    }

    #setFailure(id, failure) {
        const outbox = this.state.outbox.map((message) => (message.id === id ? { ...message, failure } : message));
        this.#update({ outbox, announcement: failure ?? "" });
    }

    #remove(id) {
        this.#update({ outbox: this.state.outbox.filter((message) => message.id !== id) });
    }
}
