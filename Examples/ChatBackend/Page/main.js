// Puts the page together: one chat, and a function for each part of the page that shows its state.

import { Chat } from "./chat.js";
import { makeComposer } from "./composer.js";
import { makeConversation } from "./conversation.js";
import { makeSettings, makeSheet } from "./dialogs.js";
import { showText } from "./element.js";
import { makeModels } from "./models.js";
import { whoseLimit } from "./screenTexts.js";
import { canRestore, indicator, isBlocked, notice, wayBack } from "./usage.js";

const part = (id) => document.getElementById(id);
const [, , user] = location.pathname.split("/");

const chat = new Chat(user, (state) => {
    for (const show of views) show(state);
});
const composer = makeComposer(part("composer"), chat);
const sheet = makeSheet(part("sheet"), chat);
const views = [
    composer.show,
    sheet.show,
    makeSettings(part("settings"), part("open-settings"), chat, sheet.open),
    makeConversation(part("conversation"), chat, composer),
    makeModels(part("models"), chat),
    showPage,
    showConnection,
    showIndicator,
    showNotice,
    showGate,
    announceUsage,
];
let announcedPlace;

part("indicator").addEventListener("click", sheet.open);
part("gate-details").addEventListener("click", sheet.open);
part("gate-restore").addEventListener("click", () => chat.restore("gate"));
part("subscribe").addEventListener("click", () => {
    const { action, plan, model } = wayBack(chat.state.usage, chat.state.models);
    if (action === "pick") chat.pick(model);
    else chat.changeSubscription(action, plan);
});
part("notice").querySelector("button").addEventListener("click", () => {
    const { action, plan } = notice(chat.state.usage);
    chat.changeSubscription(action, plan);
});
chat.start();

function showPage({ hasLoaded, name, messages, answering, outbox, usage, announcement }) {
    const isNamed = name !== "" && name !== "You";
    showText(part("who"), isNamed ? `with ${name}` : null);
    const welcome = part("welcome");
    welcome.hidden = !hasLoaded || messages.length > 0 || answering !== null || outbox.length > 0;
    showText(welcome.querySelector("h2"), `Hello${isNamed ? ` ${name}` : ""}. I'm glad you're here.`);
    welcome.querySelector("p").hidden = isBlocked(usage);
    if (part("announcer").textContent !== announcement) part("announcer").textContent = announcement;
    document.documentElement.dataset.loaded = String(hasLoaded);
}

function showConnection({ isConnected, offlineMessage, usage }) {
    // The service's sentence promises that the user can keep chatting, which a blocked user cannot.
    const blockedMessage = "I can't look up your plan right now. I'll try again in a moment.";
    const lostMessage = "You're offline — your message will be sent when we're back";
    const message = offlineMessage && isBlocked(usage) ? blockedMessage : offlineMessage;
    showText(part("connection"), isConnected ? message : lostMessage);
}

function showIndicator({ usage }) {
    const place = part("indicator");
    const shown = indicator(usage);
    place.dataset.display = usage?.display ?? "hidden";
    place.dataset.tier = usage?.tier ?? "silent";
    place.dataset.tone = shown?.tone ?? "";
    place.hidden = !shown;
    showText(place.querySelector(".day"), shown?.day);
    showText(place.querySelector(".sentence"), shown?.text, usage?.lang);
}

function showNotice({ usage, models, canSubscribe, changing }) {
    const shown = notice(usage);
    const place = part("notice");
    place.hidden = !shown;
    if (!shown) return;
    place.dataset.tone = shown.tone;
    showText(place.querySelector("p"), shown.text, usage.lang);
    const button = place.querySelector("button");
    showText(button, shown.label);
    button.setAttribute("aria-disabled", String(changing !== null));
    // The gate has the same button.
    button.hidden = !canSubscribe || (isBlocked(usage) && wayBack(usage, models).action === shown.action);
}

/** What takes the composer's place while the user may not send. */
function showGate({ usage, models, answering, canSubscribe, changing, problem, restored }) {
    const gate = part("gate");
    // The last message can be stopped until it is answered.
    const isClosed = isBlocked(usage) && !answering;
    const hadFocus = (isClosed ? composer.form : gate).contains(document.activeElement);
    const isChange = gate.hidden === isClosed;
    gate.hidden = !isClosed;
    composer.form.hidden = isClosed;
    if (isChange && hadFocus) (isClosed ? gate : composer).focus();
    if (!isClosed) return;
    showText(part("gate-words"), usage.banner, usage.lang);
    showText(part("gate-limit"), whoseLimit(usage, models));
    const { action, label } = wayBack(usage, models);
    showText(part("subscribe"), changing ? "One moment…" : label);
    part("subscribe").setAttribute("aria-disabled", String(changing !== null));
    part("subscribe").hidden = !canSubscribe && action !== "pick";
    part("gate-restore").hidden = !canSubscribe || !canRestore(usage);
    showText(gate.querySelector(".problem"), problem);
    showText(gate.querySelector(".outcome"), restored?.place === "gate" ? restored.text : null);
}

/** Tells screen readers the sentence that has appeared above the composer or in its place, not each of its numbers. */
function announceUsage({ hasLoaded, usage, model }) {
    const gate = part("gate");
    const place = gate.hidden ? (indicator(usage)?.tone ?? "none") : "gate";
    const key = `${model} ${place}`;
    if (!hasLoaded || key === announcedPlace) return;
    // The page's first sentence is read with the page, and a gate that takes the focus is read as well.
    const isRead = announcedPlace === undefined || gate.contains(document.activeElement);
    announcedPlace = key;
    const announcer = part("usage-announcer");
    announcer.lang = usage?.lang ?? "";
    announcer.textContent = isRead || place === "none" ? "" : usage.banner;
}
