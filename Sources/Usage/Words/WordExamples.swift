extension Vocabulary {
    /// A text as users see it, with example values.
    public struct Example: Sendable, Equatable {
        /// The number that chose the form; nil for a word with one form.
        public var number: Int?
        public var text: String
    }

    /// One example for each form of a word that differs from the others.
    public func examples(of sentence: Sentence) -> [Example] {
        guard sentence.numberBlank != nil else { return [Example(number: nil, text: example(of: sentence, 1))] }
        let rule = PluralRule(language(of: sentence))
        var seen: Set<PluralCategory> = []
        return [1, 2, 5, 0, 11, 3, 6].compactMap { number in
            guard seen.insert(rule.category(of: number)).inserted else { return nil }
            return Example(number: number, text: example(of: sentence, number))
        }
    }

    private static let exampleLimit = 100

    private func example(of sentence: Sentence, _ number: Int) -> String {
        switch sentence {
        case .date: return text(CivilDate(year: 2026, month: 12, day: max(1, number)))
        case .dateWithYear: return text(CivilDate(year: 2026, month: 12, day: 1), withYear: true)
        case .days, .hours, .minutes: return text(Wait.Amount(unit: sentence, number: number))
        case .waitJoined: return text(waitSeconds: Vocabulary.exampleWaitSeconds)
        default:
            var values = Phrase.Values()
            let limit = sentence.numberBlank == .limit ? number : Vocabulary.exampleLimit
            values.allowance = Allowance(
                used: sentence.numberBlank == .remaining ? limit - number : number,
                limit: limit
            )
            values.requested = number + 10
            values.date = RelativeDate(CivilDate(year: 2026, month: 12, day: 1))
            values.waitSeconds = Vocabulary.exampleWaitSeconds
            (values.day, values.days) = (2, 3)
            values.entitlement = Vocabulary.exampleEntitlement
            if TimedSentences.sentencesAboutModels.contains(sentence) { values.modelLabel = "GPT-5 Large" }
            if sentence == .fallback {
                (values.banner, values.fallback) = (example(of: .blockedModelWait, number), "GPT-5 Mini")
            }
            return Phrase(sentence, values).text(in: self)
        }
    }

    /// The wait of the examples, 2 hours 10 minutes.
    private static let exampleWaitSeconds: Int64 = 7_800

    private static let exampleEntitlement = Entitlement(
        plan: Plan(name: "premium", label: "Premium", cycle: .monthly, allowance: exampleLimit),
        state: .active,
        period: BillingPeriod(storedLabel: "2026-11"),
        limit: exampleLimit,
        startedAt: Instant(CivilDate(year: 2026, month: 11, day: 1))
    )
}
