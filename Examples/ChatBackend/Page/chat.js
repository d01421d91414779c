// One user's chat: what is known of it, and what a person can do. Without anything of how it looks.

import { Changes } from "./changes.js";
import { emptyCounter } from "./counter.js";
import { Keeping } from "./keeping.js";
import { LiveUsage } from "./liveUsage.js";
import { Sending } from "./sending.js";
import { failureWords, managementFailed, restored, restoreWords } from "./screenWords.js";
import { Service } from "./service.js";
import { Store } from "./store.js";
import { counted, isSameAllowance } from "./usageFigures.js";

/** Changes come in twos and threes; the conversation is read once for them. */
const gatheringTime_ms = 300;
const timerMaximum_ms = 24 * 3600 * 1000;

export class Chat {
    #service;
    #usage;
    #sending;
    #changes;
    #timers = {};
    #needsReading = false;
    #readings = 0;
    /** How often the stream of changes has said whether Headroom can be reached. */
    #reachabilityNews = 0;

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
            /** Where a subscription is being restored from: "gate" or "settings". */
            restoring: null,
            /** What came of it: `{place, words}`. */
            restored: null,
            /** The plan that was switched to and that begins later. */
            canSubscribe: true,
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
            onSettled: (isUncertain) => (isUncertain || this.#needsReading) && this.#readSoon(),
        });
        this.#changes = new Changes(this.#service.changesAddress, {
            usage: (usage) => this.#told(usage),
            offline: (words) => this.#isOffline(words),
            online: () => this.#isOnline(),
            opened: () => this.#isOpened(),
            lost: () => this.store.update({ connection: "lost" }),
        });
        this.keeping.onChangeElsewhere((id, kept) => this.#sending.changedElsewhere(id, kept));
        document.addEventListener("visibilitychange", () => {
            if (this.store.state.hasLoaded) this.#followWhileNeeded();
            if (document.visibilityState === "visible") this.#readSoon();
        });
    }

    async start() {
        await this.#read();
        this.store.update({ hasLoaded: true });
        this.store.subscribe(() => this.#followWhileNeeded());
        this.#followWhileNeeded();
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
        this.store.update({ subscribing: action, problem: null, restored: null });
        try {
            await this.#service.changeSubscription(action, plan);
            await this.#read();
            // Whatever came of it, and whether or not it shows.
            this.store.update({ subscribing: null });
        } catch (error) {
            this.store.update({ subscribing: null, problem: failureWords(action, error) });
        }
    }

    /** Looks for what was bought before; `place` is where this was asked for. */
    async restore(place) {
        this.store.update({ restoring: place, restored: null, problem: null });
        let words = restored;
        try {
            await this.#service.changeSubscription("restore");
            await this.#read();
        } catch (error) {
            words = restoreWords(place, error);
        }
        this.store.update({ restoring: null, restored: { place, words } });
    }

    /** There is no store to manage a subscription in. */
    managementFailed() {
        this.store.update({ problem: managementFailed });
    }

    /** Forgets the messages of a screen that the user has closed. */
    dismiss() {
        this.store.update({ problem: null, restored: null });
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
        if (before && !isSameAllowance(before, usage)) {
            this.store.update({ subscribing: null, problem: null });
        }
    }

    /**
     * A browser has six connections to a host for all of its windows, and an open stream takes one: a window that
     * nobody sees, and that has nothing to send, gives its own to the others.
     */
    #followWhileNeeded() {
        const { answering, outbox } = this.store.state;
        const isSending = answering !== null || outbox.some((message) => message.waitsFor !== "person");
        const isNeeded = document.visibilityState === "visible" || isSending;
        if (isNeeded === this.#changes.isOpen) return;
        if (isNeeded) this.#changes.open();
        else this.#changes.close();
    }

    #isOffline(words) {
        this.#reachabilityNews += 1;
        this.store.update({ offlineWords: words });
    }

    #isOnline() {
        this.#reachabilityNews += 1;
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
        const reading = (this.#readings += 1);
        const { heard, answers } = this.#usage;
        const reachabilityNews = this.#reachabilityNews;
        try {
            const { name, messages, usage, offline, can_subscribe } = await this.#service.state();
            if (reading !== this.#readings) return;
            this.#takeConversation(messages, answers);
            this.store.update({ name, canSubscribe: can_subscribe !== false });
            // What came meanwhile is newer than what is read.
            if (reachabilityNews === this.#reachabilityNews) this.store.update({ offlineWords: offline ?? null });
            if (usage && heard === this.#usage.heard) this.#take(usage);
        } catch {
            // Its stream of changes will say so, and come back.
        }
    }

    #takeConversation(messages, answers) {
        if (this.store.state.answering) {
            this.#needsReading = true;
        } else if (answers !== this.#usage.answers) {
            // A message was answered while it was read, and may be missing.
            this.#readSoon();
        } else {
            this.#sending.foundSent(new Set(messages.map((message) => message.id)));
            this.store.update({ messages });
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
