// One user's chat: what is known of it, and what a person can do. Without anything of how it looks.

import { Changes } from "./changes.js";
import { emptyCounter } from "./counter.js";
import { Keeping } from "./keeping.js";
import { LiveUsage } from "./liveUsage.js";
import { Sending } from "./sending.js";
import { Refusal, Service } from "./service.js";
import { Store } from "./store.js";
import { counted, isSameAllowance } from "./usageFigures.js";

/** Changes come in twos and threes; the conversation is read once for them. */
const gatheringTime_ms = 300;
const subscribingTime_ms = 8000;
const timerMaximum_ms = 24 * 3600 * 1000;

export class Chat {
    #service;
    #usage;
    #sending;
    #changes;
    #timers = {};
    #needsReading = false;

    constructor(user) {
        this.keeping = new Keeping(user);
        this.store = new Store({
            name: "",
            messages: [],
            counter: emptyCounter,
            outbox: this.keeping.load(),
            /** The message under way: `{id, text, answer, isHeld}`. */
            answering: null,
            connection: "opening",
            /** What Headroom's absence is told with; null while it can be reached. */
            offlineWords: null,
            /** The action that the store was told and that has not shown yet. */
            subscribing: null,
            problem: null,
            announcement: null,
            hasLoaded: false,
        });
        this.#service = new Service(user);
        this.#usage = new LiveUsage(this.store, () => this.#sending.wake("allowance"));
        this.#sending = new Sending({
            store: this.store,
            service: this.#service,
            usage: this.#usage,
            keeping: this.keeping,
            onSettled: () => this.#needsReading && this.#readSoon(),
        });
        this.#changes = new Changes(this.#service.changesAddress, {
            usage: (usage) => this.#told(usage),
            offline: (words) => this.store.update({ offlineWords: words }),
            online: () => this.#isOnline(),
            opened: () => this.#isOpened(),
            lost: () => this.store.update({ connection: "lost" }),
        });
        this.keeping.onChangeElsewhere((waiting) => this.#sending.keptElsewhere(waiting));
        document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.#readSoon());
    }

    async start() {
        await this.#read();
        this.store.update({ hasLoaded: true });
        this.#changes.open();
        this.#sending.wake("elsewhere");
    }

    send(text) {
        this.#sending.add(text);
    }

    stop() {
        this.#sending.stop();
    }

    retry(id) {
        this.#sending.retry(id);
    }

    takeBack(id) {
        return this.#sending.takeBack(id);
    }

    /** Tells the store. What changes by it comes as any change does. */
    async changeSubscription(action, plan) {
        this.store.update({ subscribing: action, problem: null });
        clearTimeout(this.#timers.subscribing);
        // Told, and nothing came of it, or it came before the store had answered.
        this.#timers.subscribing = setTimeout(() => this.store.update({ subscribing: null }), subscribingTime_ms);
        try {
            await this.#service.changeSubscription(action, plan);
            await this.#read();
        } catch (error) {
            const reason = error instanceof Refusal && error.message ? ` ${error.message}` : "";
            const problem = `I couldn't reach the store just now. Please try again.${reason}`;
            this.store.update({ subscribing: null, problem });
        }
    }

    #told(usage) {
        const before = this.#usage.usage;
        this.#take(usage);
        // Counted in another window, or on another device: the conversation went on there.
        if (before && !this.store.state.answering && counted(before) !== counted(usage)) this.#readSoon();
    }

    #take(usage) {
        const before = this.#usage.usage;
        this.#usage.told(usage);
        this.#readWhenTimeChangesIt(usage);
        if (before && !isSameAllowance(before, usage)) this.store.update({ subscribing: null, problem: null });
    }

    #isOnline() {
        const wasAway = this.store.state.offlineWords !== null;
        this.store.update({ offlineWords: null });
        if (wasAway) this.#readSoon();
        this.#sending.wake("headroom");
    }

    #isOpened() {
        const wasLost = this.store.state.connection === "lost";
        this.store.update({ connection: "open" });
        if (wasLost) {
            this.store.update({ announcement: { words: "We're back." } });
            this.#readSoon();
        }
        this.#sending.wake("connection");
    }

    #readSoon() {
        clearTimeout(this.#timers.reading);
        this.#timers.reading = setTimeout(() => this.#read(), gatheringTime_ms);
    }

    async #read() {
        // What is under way would be missing from what is read.
        if (this.store.state.answering) {
            this.#needsReading = true;
            return;
        }
        this.#needsReading = false;
        try {
            const { name, messages, usage, offline } = await this.#service.state();
            if (this.store.state.answering) {
                this.#needsReading = true;
            } else {
                this.#sending.foundSent(new Set(messages.map((message) => message.id)));
                this.store.update({ messages });
            }
            this.store.update({ name, offlineWords: offline ?? null });
            if (usage) this.#take(usage);
        } catch {
            // Its stream of changes will say so, and come back.
        }
    }

    /** A trial ends and a month begins without anybody changing anything, so nothing tells. */
    #readWhenTimeChangesIt(usage) {
        clearTimeout(this.#timers.boundary);
        const now = Date.now();
        const instants = [usage.resets, usage.expires].filter(Boolean);
        const waits = instants.map((instant) => Date.parse(instant) - now).filter((wait) => wait > 0);
        if (!waits.length) return;
        const wait = Math.min(...waits, timerMaximum_ms) + 1000;
        this.#timers.boundary = setTimeout(() => this.#read(), wait);
    }
}
