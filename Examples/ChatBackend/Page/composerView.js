// Where a message is written. Writing is possible at any time; sending, while no answer is under way.

export function makeComposer(form, chat) {
    const field = form.querySelector("textarea");
    const send = form.querySelector("#send");
    const stop = form.querySelector("#stop");
    // On a phone's keyboard, Enter is a new line, and the button sends.
    const isPhone = matchMedia("(pointer: coarse)").matches && !matchMedia("(any-pointer: fine)").matches;
    let isAnswering = false;

    field.value = chat.keeping.draft;

    function grow() {
        send.disabled = field.value.trim() === "";
        // Where the browser does it by itself, this is not needed.
        if (CSS.supports("field-sizing", "content")) return;
        field.style.blockSize = "auto";
        field.style.blockSize = `${field.scrollHeight}px`;
    }

    field.addEventListener("input", () => {
        chat.keeping.draft = field.value;
        grow();
    });
    field.addEventListener("keydown", (event) => {
        // Enter also ends the choice of a character where one is composed of several keys.
        if (event.key !== "Enter" || event.shiftKey || event.isComposing || isPhone) return;
        event.preventDefault();
        form.requestSubmit();
    });
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        const text = field.value.trim();
        if (!text || isAnswering) return;
        setText("");
        chat.send(text);
        field.focus();
    });
    stop.addEventListener("click", () => {
        chat.stop();
        field.focus();
    });
    addEventListener("keydown", (event) => {
        if (event.key === "Escape" && isAnswering && !document.querySelector("dialog[open]")) chat.stop();
    });

    function setText(text) {
        field.value = text;
        chat.keeping.draft = text;
        grow();
    }

    grow();
    return {
        element: form,
        get text() {
            return field.value.trim();
        },
        focus: () => field.focus(),
        /** Puts a text there to be changed, before what is there already. */
        take(text) {
            setText([text, field.value].filter(Boolean).join("\n\n"));
            field.focus();
        },
        show({ answering }) {
            isAnswering = answering !== null;
            stop.hidden = !isAnswering;
            send.hidden = isAnswering;
        },
    };
}
