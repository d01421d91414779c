// Puts the page together: one chat, and a view for each thing that a person sees of it.

import { Chat } from "./chat.js";
import { makeComposer } from "./composerView.js";
import { makeConnection } from "./connectionView.js";
import { makeConversation } from "./conversationView.js";
import { shown } from "./counter.js";
import { makeGate } from "./gateView.js";
import { makeIndicator } from "./indicatorView.js";
import { makeNotice } from "./noticeView.js";
import { isNamed } from "./people.js";
import { makeSettings } from "./settingsView.js";
import { makeSheet } from "./sheetView.js";
import { describe } from "./usageDescription.js";
import { makeWelcome } from "./welcomeView.js";

const part = (id) => document.getElementById(id);
const [, , user] = location.pathname.split("/");

const chat = new Chat(user);
const composer = makeComposer(part("composer"), chat);
const sheet = makeSheet(part("sheet"), chat);
const views = [
    composer.show,
    sheet.show,
    makeGate(part("gate"), { chat, openDetails: sheet.open, composer }),
    makeIndicator(part("indicator"), sheet.open),
    makeNotice(part("notice"), chat),
    makeConnection(part("connection")),
    makeSettings(part("settings"), part("open-settings"), { chat, openDetails: sheet.open }),
    makeWelcome(part("welcome"), composer),
    makeConversation(part("conversation"), { chat, composer }),
    showName,
    announce,
];

let isGated = false;

chat.store.subscribe((state) => {
    const known = { ...state, description: describe(shown(state.counter), new Date()) };
    // Who sends the last message there is can still stop it, and has it back a moment later.
    const isOpen = !isGated && (state.answering || state.counter.givenBack);
    if (isOpen) known.description = { ...known.description, gate: null };
    isGated = known.description.gate !== null;
    for (const show of views) show(known);
    document.documentElement.dataset.loaded = String(state.hasLoaded);
});
chat.start();

function showName({ name }) {
    part("who").textContent = isNamed(name) ? `with ${name}` : "";
}

let announced = null;

/** For who does not see it: answers when they are whole, and what became of a message. */
function announce({ announcement }) {
    if (announcement === announced) return;
    announced = announcement;
    part("announcer").textContent = announcement?.words ?? "";
}
