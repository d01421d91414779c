// Everything about plan and usage: what is used, what is left, until when, and what can be changed.

import { fillDialog, openDialog } from "./dialogs.js";
import { element, icon, setText } from "./element.js";
import { offer } from "./plans.js";
import { detailsFailed } from "./screenWords.js";

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
    const question = element("section", { class: "question", "aria-labelledby": "question-title", hidden: true });
    const next = element("p", { class: "outcome", role: "status", hidden: true });
    let canManage = true;
    manage.addEventListener("click", () => {
        if (canManage) unfold(choices.hidden && question.hidden);
        else chat.managementFailed();
    });
    dialog.addEventListener("close", () => {
        unfold(false);
        chat.dismiss();
    });
    content.append(figure, bar, sentence, facts, notice, next, manage, problem, choices, question);

    let shownChoices = "";

    function unfold(isUnfolded) {
        choices.hidden = !isUnfolded;
        question.hidden = true;
        manage.setAttribute("aria-expanded", String(isUnfolded));
        if (isUnfolded) choices.scrollIntoView({ block: "nearest" });
    }

    function show({ description, subscribing, problem: problemWords, canSubscribe }) {
        const { details } = description;
        setText(heading, details?.label || "Plan and usage");
        for (const part of [bar, facts]) part.hidden = !details;
        manage.hidden = !details;
        canManage = canSubscribe;
        const nextPlan = details?.nextPlan ?? null;
        next.hidden = nextPlan === null;
        setText(next, nextPlan === null ? "" : `${offer(nextPlan)?.name ?? nextPlan} begins with your next renewal.`);
        problem.hidden = !problemWords;
        setText(problem, problemWords ?? "");
        notice.hidden = !description.notice;
        setText(notice, description.notice?.words ?? "");
        notice.dataset.tone = description.notice?.tone ?? "";
        if (!details) {
            figure.replaceChildren();
            unfold(false);
            return setText(sentence, detailsFailed);
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
            { term: "State", words: details.state },
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
            ...offered.map(({ action, plan, label, about, question: asked }) =>
                element(
                    "button",
                    {
                        type: "button",
                        class: "row",
                        "data-action": action,
                        "data-plan": plan,
                        "aria-disabled": String(subscribing !== null),
                        onclick: () => {
                            if (subscribing !== null) return;
                            if (asked) ask(asked, action, plan);
                            else chat.changeSubscription(action, plan);
                        },
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

    /** Before a plan that gives less: what stays, what changes, and a way out. */
    function ask(words, action, plan) {
        const title = element("h3", { id: "question-title", tabindex: "-1" }, words.title);
        const answer = (isYes) => {
            unfold(false);
            manage.focus();
            if (isYes) chat.changeSubscription(action, plan);
        };
        const yes = { type: "button", class: "primary", id: "confirm", onclick: () => answer(true) };
        const no = { type: "button", class: "plain", id: "keep", onclick: () => answer(false) };
        question.replaceChildren(
            title,
            element("dl", {}, ...fact("What stays", words.stays), ...fact("What changes", words.changes)),
            element(
                "div",
                { class: "gate-actions" },
                element("button", yes, words.confirm),
                element("button", no, words.keep),
            ),
        );
        choices.hidden = true;
        question.hidden = false;
        title.focus();
        question.scrollIntoView({ block: "nearest" });
    }

    function fact(term, words) {
        return [element("dt", {}, term), element("dd", {}, words)];
    }

    return { show, open: () => openDialog(dialog) };
}
