// Everything about plan and usage: what is used, what is left, until when, and what can be changed.

import { fillDialog, openDialog } from "./dialogs.js";
import { element, icon, setText } from "./element.js";

const unknownWords = "I can't look up your plan right now. I'll try again in a moment.";

export function makeSheet(dialog, chat) {
    const { heading, content } = fillDialog(dialog, "Plan and usage");
    const figure = element("p", { class: "figure" });
    const bar = element("progress", { class: "bar-of-usage" });
    const sentence = element("p", { class: "accessible" });
    const facts = element("dl", { class: "facts" });
    const notice = element("p", { class: "sheet-notice" });
    const choices = element("div", { class: "rows", id: "choices", hidden: true });
    const problem = element("p", { class: "problem", role: "alert", hidden: true });
    const manage = element(
        "button",
        { type: "button", class: "secondary", id: "manage", "aria-expanded": "false", "aria-controls": "choices" },
        "Manage subscription",
    );
    manage.addEventListener("click", () => unfold(choices.hidden));
    dialog.addEventListener("close", () => unfold(false));
    content.append(figure, bar, sentence, facts, notice, manage, problem, choices);

    let shownChoices = "";

    function unfold(isUnfolded) {
        choices.hidden = !isUnfolded;
        manage.setAttribute("aria-expanded", String(isUnfolded));
        if (isUnfolded) choices.scrollIntoView({ block: "nearest" });
    }

    function show({ description, subscribing, problem: problemWords, canSubscribe, offlineWords }) {
        const { details } = description;
        setText(heading, details?.label || "Plan and usage");
        for (const part of [bar, facts]) part.hidden = !details;
        manage.hidden = !details || !canSubscribe;
        problem.hidden = !problemWords;
        setText(problem, problemWords ?? "");
        notice.hidden = !description.notice;
        setText(notice, description.notice?.words ?? "");
        notice.dataset.tone = description.notice?.tone ?? "";
        if (!details) {
            figure.replaceChildren();
            return setText(sentence, offlineWords ?? unknownWords);
        }
        showFigures(details, description.tier);
        showChoices(details.choices, subscribing);
    }

    function showFigures(details, tier) {
        const unit = details.limit === null ? "messages" : details.remaining === "1" ? "message left" : "messages left";
        figure.replaceChildren(element("strong", {}, details.remaining), ` ${unit}`);
        bar.hidden = details.bar === null;
        bar.dataset.tier = tier;
        if (details.bar) {
            bar.max = details.bar.maximum;
            bar.value = details.bar.value;
            bar.setAttribute("aria-label", "Used");
            bar.setAttribute("aria-valuetext", details.accessible);
        }
        setText(sentence, details.accessible);
        const rows = [
            { term: "Used", words: details.used },
            { term: "Remaining", words: details.remaining },
            ...details.dates,
        ];
        const text = JSON.stringify(rows);
        if (facts.dataset.shown === text) return;
        facts.dataset.shown = text;
        facts.replaceChildren(
            ...rows.map(({ term, words }) => element("div", {}, element("dt", {}, term), element("dd", {}, words))),
        );
    }

    function showChoices(offered, subscribing) {
        const text = JSON.stringify([offered, subscribing]);
        if (text === shownChoices) return;
        shownChoices = text;
        const hadFocus = choices.contains(document.activeElement);
        choices.replaceChildren(
            ...offered.map(({ action, plan, label, about }) =>
                element(
                    "button",
                    {
                        type: "button",
                        class: "row",
                        "data-action": action,
                        "data-plan": plan,
                        "aria-disabled": String(subscribing !== null),
                        onclick: () => subscribing === null && chat.changeSubscription(action, plan),
                    },
                    element(
                        "span",
                        { class: "row-words" },
                        element("strong", {}, label),
                        element("span", { class: "about" }, subscribing === action ? "One moment…" : about),
                    ),
                    icon("next"),
                ),
            ),
        );
        if (hadFocus) manage.focus();
    }

    return { show, open: () => openDialog(dialog) };
}
