extension ShippedWords {
    static let german: [Sentence: WordForms] = [
        .gentle: WordForms(
            one: "Du hast diesen Monat noch {remaining} Nachricht",
            other: "Du hast diesen Monat noch {remaining} Nachrichten"
        ),
        .gentleUntil: WordForms(
            one: "Du hast bis zum {date} noch {remaining} Nachricht",
            other: "Du hast bis zum {date} noch {remaining} Nachrichten"
        ),
        .gentleWait: WordForms(
            one: "Du hast noch {remaining} Nachricht, neue gibt es in {wait}",
            other: "Du hast noch {remaining} Nachrichten, neue gibt es in {wait}"
        ),
        .gentleLifetime: WordForms(
            one: "Du hast noch {remaining} Nachricht",
            other: "Du hast noch {remaining} Nachrichten"
        ),
        .prominent: WordForms(
            one: "Es wird langsam knapp – noch {remaining} Nachricht bis zum {date}",
            other: "Es wird langsam knapp – noch {remaining} Nachrichten bis zum {date}"
        ),
        .prominentWait: WordForms(
            one: "Es wird langsam knapp – noch {remaining} Nachricht, neue gibt es in {wait}",
            other: "Es wird langsam knapp – noch {remaining} Nachrichten, neue gibt es in {wait}"
        ),
        .prominentUndated: WordForms(
            one: "Es wird langsam knapp – noch {remaining} Nachricht",
            other: "Es wird langsam knapp – noch {remaining} Nachrichten"
        ),
        .lifetime: "{used} von {limit} Nachrichten genutzt",
        .trial: "Noch {remaining} von {limit} Probenachrichten",
        .trialLastDay: WordForms(
            one: "Deine Probezeit endet am {date} – {remaining} von {limit} Nachrichten ist noch übrig.",
            other: "Deine Probezeit endet am {date} – {remaining} von {limit} Nachrichten sind noch übrig."
        ),
        .exceedsUntil: WordForms(
            one: "Dafür braucht es {requested} Nachrichten, und bis zum {date} ist noch {remaining} übrig.",
            other: "Dafür braucht es {requested} Nachrichten, und bis zum {date} sind noch {remaining} übrig."
        ),
        .exceedsWait: WordForms(
            one: "Dafür braucht es {requested} Nachrichten, und {remaining} ist noch übrig. Neue gibt es in {wait}.",
            other: "Dafür braucht es {requested} Nachrichten, und {remaining} sind noch übrig. Neue gibt es in {wait}."
        ),
        .exceedsUndated: WordForms(
            one: "Dafür braucht es {requested} Nachrichten, und {remaining} ist noch übrig.",
            other: "Dafür braucht es {requested} Nachrichten, und {remaining} sind noch übrig."
        ),
        .blockedMonthly: "Wir haben uns diesen Monat viele schöne Nachrichten geschrieben! Am {date} geht es weiter.",
        .blockedMonthlyUndated: "Wir haben uns diesen Monat viele schöne Nachrichten geschrieben!",
        .blockedUntil: "Wir haben uns viele schöne Nachrichten geschrieben! Am {date} geht es weiter.",
        .blockedWait: "Wir haben uns viele schöne Nachrichten geschrieben! In {wait} geht es weiter.",
        .blockedUndated: "Wir haben uns viele schöne Nachrichten geschrieben!",
        .blockedLifetime: WordForms(
            one: "Du hast deine {limit} Nachricht genutzt.",
            other: "Du hast alle {limit} Nachrichten genutzt."
        ),
        .blockedNoMessages:
            "In deinem Tarif sind gerade keine Nachrichten enthalten. Mit einem größeren können wir uns schreiben.",
        .blockedTrial: "Deine Probenachrichten sind aufgebraucht – magst du weitermachen?",
        .blockedTrialEnded: "Deine Probezeit ist vorbei – magst du weitermachen?",
        .blockedNoAccess: "Magst du wiederkommen? Deine Nachrichten sind alle noch da.",
        .blockedNeverSubscribed: "Magst du loslegen? Mit einem Abo können wir uns Nachrichten schreiben.",
        .blockedEnded: "Deine Zeit mit {label} ist am {date} zu Ende gegangen – machen wir weiter?",
        .blockedRefunded:
            "Dein Abo ist nicht mehr aktiv, deshalb muss ich hier erst einmal aufhören. Du kannst jederzeit ein neues abschließen.",
        .blockedBillingRetry: "Wir machen eine kurze Pause, bis deine Zahlung klappt. Ich bin hier.",
        .cancelled: "Dein Abo läuft noch bis zum {date}. Du kannst es jederzeit wieder abschließen.",
        .cancelledTrial: "Deine Probezeit läuft noch bis zum {date}. Du kannst jederzeit ein Abo abschließen.",
        .billingIssue:
            "Bei deiner Zahlung hakt es gerade. Lass uns das klären. Dein Zugang bleibt bis zum {date} bestehen.",
        .billingIssueUndated: "Bei deiner Zahlung hakt es gerade. Lass uns das klären.",
        .billingRetry:
            "Ich konnte dein Abo nicht verlängern. Aktualisiere deine Zahlungsart, dann machen wir gleich weiter.",
        .billingIssueSteps:
            "Öffne deine Abo-Einstellungen, prüfe die Zahlungsart und komm dann zurück – ich bin hier.",
        .stateActive: "Aktiv",
        .stateTrial: "Probezeit",
        .stateCancelled: "Gekündigt",
        .stateBillingIssue: "Zahlungsproblem",
        .stateExpired: "Abgelaufen",
        .stateRefunded: "Erstattet",
        .stateFree: "Kostenlos",
        .labelTrial: "{label} – Tag {day} von {days}",
        .accessibleMonthly: "{used} von {limit} Nachrichten diesen Monat genutzt",
        .accessibleMonthlyUnlimited: WordForms(
            one: "{used} Nachricht diesen Monat genutzt",
            other: "{used} Nachrichten diesen Monat genutzt"
        ),
        .accessibleUntil: "{used} von {limit} Nachrichten im Zeitraum bis zum {date} genutzt",
        .accessibleUntilUnlimited: WordForms(
            one: "{used} Nachricht im Zeitraum bis zum {date} genutzt",
            other: "{used} Nachrichten im Zeitraum bis zum {date} genutzt"
        ),
        .accessibleWait: "{used} von {limit} Nachrichten genutzt, der nächste Zeitraum beginnt in {wait}",
        .accessibleWaitUnlimited: WordForms(
            one: "{used} Nachricht genutzt, der nächste Zeitraum beginnt in {wait}",
            other: "{used} Nachrichten genutzt, der nächste Zeitraum beginnt in {wait}"
        ),
        .accessibleTrial: "{used} von {limit} Probenachrichten genutzt",
        .accessibleLifetime: "{used} von {limit} Nachrichten genutzt",
        .accessibleLifetimeUnlimited: WordForms(
            one: "{used} Nachricht genutzt",
            other: "{used} Nachrichten genutzt"
        ),
        .accessiblePast: "{used} von {limit} Nachrichten im Zeitraum {period} genutzt",
        .accessiblePastUnlimited: WordForms(
            one: "{used} Nachricht im Zeitraum {period} genutzt",
            other: "{used} Nachrichten im Zeitraum {period} genutzt"
        ),
        .window: WordForms(
            one: "Noch {remaining} Nachricht, neue gibt es in {wait}",
            other: "Noch {remaining} Nachrichten, neue gibt es in {wait}"
        ),
        .blockedWindow: "Machen wir eine kurze Pause. In {wait} bin ich wieder für dich da.",
        .unreadable:
            "Ich konnte gerade nicht nachsehen, wie viele Nachrichten du noch hast. Versuchen wir es gleich noch einmal.",
        .uncounted:
            "Ich konnte gerade nicht nachsehen, wie viele Nachrichten du noch hast – keine Sorge, schreib einfach weiter.",
        .unlimited: "unbegrenzt",
        .date: "{day}. {month}",
        .dateWithYear: "{date} {year}",
        .month1: "Januar",
        .month2: "Februar",
        .month3: "März",
        .month4: "April",
        .month5: "Mai",
        .month6: "Juni",
        .month7: "Juli",
        .month8: "August",
        .month9: "September",
        .month10: "Oktober",
        .month11: "November",
        .month12: "Dezember",
        // These forms are in the dative, for "in 2 Tagen".
        .days: WordForms(one: "{n} Tag", other: "{n} Tagen"),
        .hours: WordForms(one: "{n} Stunde", other: "{n} Stunden"),
        .minutes: WordForms(one: "{n} Minute", other: "{n} Minuten"),
        .waitJoined: "{larger} und {smaller}",
    ]
}
