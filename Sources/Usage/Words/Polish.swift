extension ShippedWords {
    static let polish: [Sentence: WordForms] = [
        .gentle: left("{remaining} %s w tym miesiącu"),
        .gentleUntil: left("{remaining} %s do {date}"),
        .gentleWait: left("{remaining} %s, kolejne za {wait}"),
        .gentleLifetime: left("{remaining} %s"),
        .prominent: messages("To już prawie koniec — jeszcze tylko {remaining} %s do {date}"),
        .prominentWait: messages("To już prawie koniec — jeszcze tylko {remaining} %s, kolejne za {wait}"),
        .prominentUndated: messages("To już prawie koniec — jeszcze tylko {remaining} %s"),
        .lifetime: "Wykorzystano {used} z {limit} wiadomości",
        .trial: WordForms(
            one: "Została {remaining} z {limit} wiadomości próbnych",
            few: "Zostały {remaining} z {limit} wiadomości próbnych",
            many: "Zostało {remaining} z {limit} wiadomości próbnych",
            other: "Zostało {remaining} z {limit} wiadomości próbnych"
        ),
        .trialLastDay: remain("Twój okres próbny kończy się {date} — %s {remaining} z {limit} wiadomości."),
        .exceedsUntil: remain("To wymaga {requested} wiadomości, a do {date} %s {remaining}."),
        .exceedsWait: remain("To wymaga {requested} wiadomości, a %s {remaining}; kolejne za {wait}."),
        .exceedsUndated: remain("To wymaga {requested} wiadomości, a %s {remaining}."),
        .blockedMonthly: "W tym miesiącu mamy za sobą mnóstwo świetnych wiadomości! Ciąg dalszy {date}.",
        .blockedMonthlyUndated: "W tym miesiącu mamy za sobą mnóstwo świetnych wiadomości!",
        .blockedUntil: "Mamy za sobą mnóstwo świetnych wiadomości! Ciąg dalszy {date}.",
        .blockedWait: "Mamy za sobą mnóstwo świetnych wiadomości! Ciąg dalszy za {wait}.",
        .blockedUndated: "Mamy za sobą mnóstwo świetnych wiadomości!",
        .blockedLifetime: WordForms(
            one: "Wykorzystano już Twoją {limit} wiadomość.",
            other: "Wykorzystano już wszystkie {limit} wiadomości."
        ),
        .blockedNoMessages: "Twój plan nie obejmuje teraz wiadomości. Z większym możemy je wymieniać.",
        .blockedTrial: "Wiadomości próbne już się skończyły — kontynuujemy?",
        .blockedTrialEnded: "Twój okres próbny dobiegł końca — kontynuujemy?",
        .blockedNoAccess: "Chcesz wrócić? Twoje wiadomości wciąż tu są.",
        .blockedNeverSubscribed: "Zaczynamy? Z subskrypcją możemy wymieniać wiadomości.",
        .blockedEnded: "Twój czas z {label} dobiegł końca {date} — kontynuujemy?",
        .blockedRefunded:
            "Twoja subskrypcja nie jest już aktywna, więc na razie muszę tu przerwać. Możesz ją wykupić ponownie w każdej chwili.",
        .blockedBillingRetry: "Robimy krótką przerwę, aż płatność się powiedzie. Czekam tutaj.",
        .cancelled: "Twoja subskrypcja jest aktywna do {date}. Możesz ją odnowić w każdej chwili.",
        .cancelledTrial: "Twój okres próbny trwa do {date}. Możesz wykupić subskrypcję w każdej chwili.",
        .billingIssue: "Jest mały problem z Twoją płatnością. Rozwiążmy go razem. Zachowujesz dostęp do {date}.",
        .billingIssueUndated: "Jest mały problem z Twoją płatnością. Rozwiążmy go razem.",
        .billingRetry:
            "Nie udało mi się odnowić Twojej subskrypcji. Zaktualizuj metodę płatności i od razu ruszamy dalej.",
        .billingIssueSteps: "Otwórz ustawienia subskrypcji, sprawdź metodę płatności i wróć — czekam tutaj.",
        .stateActive: "Aktywna",
        .stateTrial: "Okres próbny",
        .stateCancelled: "Anulowana",
        .stateBillingIssue: "Problem z płatnością",
        .stateExpired: "Wygasła",
        .stateRefunded: "Zwrócona",
        .stateFree: "Bezpłatna",
        .labelTrial: "{label} — dzień {day} z {days}",
        .accessibleMonthly: "Wykorzystano {used} z {limit} wiadomości w tym miesiącu",
        .accessibleMonthlyUnlimited: messages("W tym miesiącu wykorzystano {used} %s"),
        .accessibleUntil: "Wykorzystano {used} z {limit} wiadomości w okresie do {date}",
        .accessibleUntilUnlimited: messages("W okresie do {date} wykorzystano {used} %s"),
        .accessibleWait: "Wykorzystano {used} z {limit} wiadomości, następny okres zaczyna się za {wait}",
        .accessibleWaitUnlimited: messages("Wykorzystano {used} %s, następny okres zaczyna się za {wait}"),
        .accessibleTrial: "Wykorzystano {used} z {limit} wiadomości próbnych",
        .accessibleLifetime: "Wykorzystano {used} z {limit} wiadomości",
        .accessibleLifetimeUnlimited: messages("Wykorzystano {used} %s"),
        .accessiblePast: "Wykorzystano {used} z {limit} wiadomości w okresie {period}",
        .accessiblePastUnlimited: messages("W okresie {period} wykorzystano {used} %s"),
        .window: left("{remaining} %s, kolejne za {wait}"),
        .blockedWindow: "Zróbmy krótką przerwę. Wracam do Ciebie za {wait}.",
        .unreadable: "Nie udało mi się teraz sprawdzić Twoich wiadomości. Spróbujmy ponownie za chwilę.",
        .uncounted: "Nie udało mi się teraz sprawdzić Twoich wiadomości — bez obaw, możesz pisać dalej.",
        .unlimited: "bez limitu",
        .date: "{day} {month}",
        .dateWithYear: "{date} {year}",
        // The months are in the genitive, for "1 grudnia".
        .month1: "stycznia",
        .month2: "lutego",
        .month3: "marca",
        .month4: "kwietnia",
        .month5: "maja",
        .month6: "czerwca",
        .month7: "lipca",
        .month8: "sierpnia",
        .month9: "września",
        .month10: "października",
        .month11: "listopada",
        .month12: "grudnia",
        // These forms are in the accusative, for "za 1 godzinę".
        .days: WordForms(one: "{n} dzień", few: "{n} dni", many: "{n} dni", other: "{n} dni"),
        .hours: WordForms(one: "{n} godzinę", few: "{n} godziny", many: "{n} godzin", other: "{n} godziny"),
        .minutes: WordForms(one: "{n} minutę", few: "{n} minuty", many: "{n} minut", other: "{n} minuty"),
        .waitJoined: "{larger} i {smaller}",
    ]

    /// Returns the text with "wiadomość" in the form of the number. Its other forms are the same word.
    private static func messages(_ text: String) -> WordForms {
        WordForms(one: text.replacing("%s", with: "wiadomość"), other: text.replacing("%s", with: "wiadomości"))
    }

    /// Returns the text with the verb "zostać" in the form of the number.
    private static func remain(_ text: String) -> WordForms {
        WordForms(
            one: text.replacing("%s", with: "została"),
            few: text.replacing("%s", with: "zostały"),
            many: text.replacing("%s", with: "zostało"),
            other: text.replacing("%s", with: "zostało")
        )
    }

    /// Returns how many messages are left, with the verb in the form of the number.
    private static func left(_ text: String) -> WordForms {
        let forms = messages(text)
        return WordForms(
            one: "Została Ci " + forms.template(for: .one),
            few: "Zostały Ci " + forms.other,
            many: "Zostało Ci " + forms.other,
            other: "Zostało Ci " + forms.other
        )
    }
}
