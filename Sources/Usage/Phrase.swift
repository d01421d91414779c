/// A sentence for a user, and the values for its placeholders.
///
/// An answer has phrases. Only `text(in:)` fills the values in.
public struct Phrase: Sendable, Equatable {
    public struct Values: Sendable, Equatable {
        /// Whose messages are used, allowed and left.
        public var allowance = Allowance(used: 0, limit: nil)
        public var date: CivilDate?
        /// Whether the date is in another year than the answer, and is said with it.
        public var isInOtherYear = false
        /// Of a trial.
        public var day: Int?
        /// How many days the trial has.
        public var days: Int?
        /// The time until messages come back.
        public var waitSeconds: Int64?
        /// How many messages were refused because fewer are left.
        public var requested: Int?
        /// Whose plan and period are named; nil for sentences that name neither.
        public var entitlement: Entitlement?

        public init() {}
    }

    public var sentence: Sentence
    public var values: Values

    public init(_ sentence: Sentence, _ values: Values = Values()) {
        self.sentence = sentence
        self.values = values
    }

    public func text(in vocabulary: Vocabulary) -> String {
        var text = ""
        // Nearly always long enough, so that the text is allocated once.
        text.reserveCapacity(96)
        vocabulary.append(sentence, values, to: &text)
        return text
    }

    /// In English, as it is shipped.
    public var text: String { text(in: Words.shipped.standard) }
}
