// Where the user writes a message.

export function makeComposer(form, chat) {
    const field = form.querySelector("textarea");
    const send = form.querySelector("#send");
    const stop = form.querySelector("#stop");
    // On a phone's keyboard Enter starts a new line, and the button sends.
    const isPhone = matchMedia("(pointer: coarse)").matches && !matchMedia("(any-pointer: fine)").matches;

    field.addEventListener("keydown", (event) => {
        // Enter also ends the composition of a character, for example in Japanese.
        if (event.key !== "Enter" || event.shiftKey || event.isComposing || isPhone) return;
        event.preventDefault();
        form.requestSubmit();
    });
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        const text = field.value.trim();
        if (!text || chat.state.answering) return;
        field.value = "";
        chat.send(text);
        field.focus();
    });
    stop.addEventListener("click", () => {
        chat.stop();
        field.focus();
    });

    return {
        form,
        focus: () => field.focus(),
        /** Puts a text before what is written already. */
        edit(text) {
            field.value = [text, field.value].filter(Boolean).join("\n\n");
            field.focus();
        },
        show({ answering }) {
            stop.hidden = !answering;
            send.hidden = Boolean(answering);
        },
    };
}
