// Sends one message and reads its answer as it comes.

import { EventReader } from "./eventReader.js";
import { Refusal } from "./service.js";

/**
 * Returns how it ended:
 * `{kind: "sent", message, usage}`, `{kind: "blocked", usage}`, `{kind: "failed", code, canRetry, words}`,
 * `{kind: "refused", status, code, words}`, `{kind: "unreachable"}` or `{kind: "stopped"}`.
 *
 * `onHeld(usage)` and `onPiece(text)` are called meanwhile.
 */
export async function deliver(service, message, signal, { onHeld, onPiece }) {
    try {
        const body = await service.send(message, signal);
        const pieces = body.pipeThrough(new TextDecoderStream()).getReader();
        const events = new EventReader();
        for (;;) {
            const { value, done } = await pieces.read();
            // Cut off before the event that ends it: what became of the message, the next attempt tells.
            if (done) return { kind: "unreachable" };
            for (const event of events.read(value)) {
                const outcome = take(event, { onHeld, onPiece });
                if (outcome) return outcome;
            }
        }
    } catch (error) {
        if (signal.aborted) return { kind: "stopped" };
        if (error instanceof Refusal) {
            return { kind: "refused", status: error.status, code: error.code, words: error.message };
        }
        return { kind: "unreachable" };
    }
}

function take({ name, data }, { onHeld, onPiece }) {
    const content = JSON.parse(data);
    switch (name) {
        case "held":
            onHeld(content);
            return null;
        case "piece":
            onPiece(content.text);
            return null;
        case "sent":
            return { kind: "sent", message: content.message, usage: content.usage };
        case "blocked":
            return { kind: "blocked", usage: content };
        case "failed":
            return {
                kind: "failed",
                code: content.code ?? "",
                canRetry: content.can_retry === true,
                words: content.message,
            };
        default:
            // Events may be added; those that are not known change nothing.
            return null;
    }
}
