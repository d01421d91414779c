// What a page shows of a chat.

export const initialState = {
    hasLoaded: false,
    name: "",
    /** The conversation: `{id, role, text}`. */
    messages: [],
    /** Messages that are not answered yet: `{id, text, failure}`. One with a failure waits for the user. */
    outbox: [],
    /** The message under way and its answer so far: `{id, text, answer}`. */
    answering: null,
    /** The models to choose from: `{name, label}`. */
    models: [],
    /** The name of the model that answers the messages sent from now on. */
    model: null,
    /** The latest usage of the backend, as messages with that model have it; null before the first. */
    usage: null,
    isConnected: true,
    /** The sentence to show while Headroom is unreachable. */
    offlineMessage: null,
    canSubscribe: true,
    /** The change of the subscription that is under way. */
    changing: null,
    problem: null,
    /** The result of restoring purchases: `{place, text}`. */
    restored: null,
    /** For screen readers. */
    announcement: "",
};
