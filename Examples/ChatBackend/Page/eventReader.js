// Server-sent events out of pieces of text that are cut anywhere. EventSource reads only what answers a GET.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

export class EventReader {
    #rest = "";
    #isFirst = true;
    #name = "";
    #data = [];

    /** Takes the next piece of text, and returns the events that it completes: `{name, data}`, the data as text. */
    read(text) {
        if (this.#isFirst && text) {
            text = text.replace(/^\uFEFF/, "");
            this.#isFirst = false;
        }
        const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
        // The last is not complete, nor is one that ends in a CR whose LF may be still to come.
        this.#rest = lines.pop();
        return lines.map((line) => this.#take(line)).filter((event) => event !== null);
    }

    #take(line) {
        if (line === "") return this.#complete();
        if (line.startsWith(":")) return null;
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "event") this.#name = value;
        if (field === "data") this.#data.push(value);
        return null;
    }

    #complete() {
        const event = this.#data.length ? { name: this.#name || "message", data: this.#data.join("\n") } : null;
        this.#name = "";
        this.#data = [];
        return event;
    }
}
