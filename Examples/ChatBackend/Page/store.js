// What the page knows, in one object that is replaced and never changed; whoever shows it is called once for all
// changes of a moment.

export class Store {
    #listeners = [];
    #isTelling = false;

    constructor(state) {
        this.state = state;
    }

    update(changes) {
        this.state = { ...this.state, ...changes };
        if (this.#isTelling) return;
        this.#isTelling = true;
        queueMicrotask(() => {
            this.#isTelling = false;
            for (const listener of this.#listeners) listener(this.state);
        });
    }

    subscribe(listener) {
        this.#listeners.push(listener);
    }
}
