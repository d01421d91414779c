// The settings, and the sheet with everything about plan and usage.

import { element, openDialog, showText } from "./element.js";
import { detailsFailed, managementFailed } from "./screenTexts.js";
import { choices, downgradeText, facts, notice, offer, remainingText, usedText } from "./usage.js";

/** A click beside a dialog closes it, as Escape does. */
function closeOnClickBeside(dialog) {
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}

export function makeSettings(dialog, opener, chat, openSheet) {
    const find = (selector) => dialog.querySelector(selector);
    opener.addEventListener("click", () => openDialog(dialog));
    find("#plan-and-usage").addEventListener("click", openSheet);
    find("#restore").addEventListener("click", () => chat.restore("settings"));
    dialog.addEventListener("close", () => chat.setProblem(null));
    closeOnClickBeside(dialog);

    return function show({ usage, canSubscribe, restored }) {
        showText(find(".label"), usage?.label ?? detailsFailed, usage?.lang);
        showText(find(".used"), usage && usedText(usage));
        find("#restore").hidden = !canSubscribe;
        showText(find(".outcome"), restored?.place === "settings" ? restored.text : null);
    };
}

export function makeSheet(dialog, chat) {
    const find = (selector) => dialog.querySelector(selector);
    const [manage, list, question] = [find("#manage"), find("#choices"), find(".question")];
    let onConfirm = () => {};
    let shownChoices = "";

    manage.addEventListener("click", () => {
        if (chat.state.canSubscribe) unfold(list.hidden && question.hidden);
        else chat.setProblem(managementFailed);
    });
    find("#confirm").addEventListener("click", () => fold(onConfirm));
    find("#keep").addEventListener("click", () => fold(() => {}));
    dialog.addEventListener("close", () => {
        unfold(false);
        chat.setProblem(null);
    });
    closeOnClickBeside(dialog);

    function unfold(isUnfolded) {
        list.hidden = !isUnfolded;
        question.hidden = true;
        manage.setAttribute("aria-expanded", String(isUnfolded));
    }

    function fold(action) {
        unfold(false);
        manage.focus();
        action();
    }

    /** Requires a confirmation before a change to a plan that gives less. */
    function confirm({ action, plan }) {
        const { usage } = chat.state;
        onConfirm = () => chat.changeSubscription(action, plan);
        showText(find("#question-title"), `Switch to ${offer(plan).name}?`);
        showText(find(".changes"), downgradeText(plan, usage));
        showText(find("#confirm"), `Switch to ${offer(plan).name}`);
        showText(find("#keep"), `Keep ${offer(usage.plan)?.name ?? "my plan"}`);
        list.hidden = true;
        question.hidden = false;
        find("#question-title").focus();
    }

    function choose(choice) {
        if (choice.action === "downgrade") confirm(choice);
        else chat.changeSubscription(choice.action, choice.plan);
    }

    function showChoices(offered, changing) {
        const key = JSON.stringify([offered, changing]);
        if (key === shownChoices) return;
        shownChoices = key;
        const hadFocus = list.contains(document.activeElement);
        list.replaceChildren(
            ...offered.map((choice) => {
                const data = { "data-action": choice.action, ...(choice.plan && { "data-plan": choice.plan }) };
                // A disabled button would lose the focus.
                const isDisabled = String(changing !== null);
                const attributes = { type: "button", class: "row", "aria-disabled": isDisabled, ...data };
                const about = changing === choice.action ? "One moment…" : choice.about;
                return element(
                    "button",
                    { ...attributes, onclick: () => choose(choice) },
                    element("strong", {}, choice.label),
                    element("span", { class: "about" }, about),
                );
            }),
        );
        if (hadFocus) manage.focus();
    }

    function showUsage(usage, models, changing) {
        find(".figure strong").textContent = remainingText(usage);
        const unit = usage.remaining === 1 ? "message left" : "messages left";
        find(".figure span").textContent = usage.limit === null ? "messages" : unit;
        const bar = find(".usage-bar");
        bar.hidden = !usage.limit;
        bar.dataset.tier = usage.tier;
        bar.max = usage.limit || 1;
        bar.value = Math.min(usage.used, bar.max);
        bar.setAttribute("aria-valuetext", usage.accessible ?? "");
        bar.lang = usage.lang ?? "";
        find(".facts").replaceChildren(
            ...facts(usage, new Date(), models).map(([term, text, lang]) =>
                element("div", {}, element("dt", {}, term), element("dd", lang ? { lang } : {}, text)),
            ),
        );
        showChoices(choices(usage), changing);
    }

    function show({ usage, models, changing, problem }) {
        showText(find("#sheet-title"), usage?.label ?? "Plan and usage", usage?.lang);
        showText(find(".accessible"), usage ? usage.accessible : detailsFailed, usage?.lang);
        showText(find(".sheet-notice"), usage?.notice, usage?.lang);
        find(".sheet-notice").dataset.tone = notice(usage)?.tone ?? "";
        showText(find(".steps"), usage?.steps, usage?.lang);
        const link = find("#manage-link");
        link.hidden = !usage?.manage;
        if (usage?.manage) link.href = usage.manage;
        const nextPlan = usage?.next_plan;
        showText(find(".outcome"), nextPlan && `${offer(nextPlan)?.name ?? nextPlan} begins with your next renewal.`);
        showText(find(".problem"), problem);
        for (const part of [find(".figure"), find(".usage-bar"), find(".facts"), manage]) part.hidden = !usage;
        if (usage) showUsage(usage, models, changing);
    }

    return { show, open: () => openDialog(dialog) };
}
