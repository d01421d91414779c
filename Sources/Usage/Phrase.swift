/// A sentence for a user, and the values for its placeholders.
///
/// An answer has phrases. Only `text` fills the values in.
public struct Phrase: Sendable, Equatable {
    public struct Values: Sendable, Equatable {
        /// Whose messages are used, allowed and left.
        public var allowance = Allowance(used: 0, limit: nil)
        public var date: Instant?
        /// Of a trial.
        public var day: Int?
        /// How many days the trial has.
        public var days: Int?
        /// Until the window ends.
        public var waitSeconds: Int64?
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

    public var text: String {
        guard let template = Phrase.templates[sentence] else { preconditionFailure("templates has all sentences") }
        let parts = sentence.number(in: values) == 1 ? template.one : template.other
        var text = ""
        // Nearly always long enough, so that the text is allocated once.
        text.reserveCapacity(96)
        for part in parts {
            switch part {
            case .text(let literal): text += literal
            case .placeholder(.remaining): text += values.allowance.remaining.map(String.init) ?? "unlimited"
            case .placeholder(.limit): text += values.allowance.limit.map(String.init) ?? "unlimited"
            case .placeholder(.used): text += String(values.allowance.used)
            case .placeholder(.date): text += values.date?.date.monthAndDay ?? ""
            case .placeholder(.label): text += values.entitlement?.plan.label ?? ""
            case .placeholder(.day): text += values.day.map(String.init) ?? ""
            case .placeholder(.days): text += values.days.map(String.init) ?? ""
            case .placeholder(.wait): text += values.waitSeconds.map(Phrase.wait) ?? ""
            case .placeholder(.period): text += values.entitlement?.period.label ?? ""
            }
        }
        return text
    }

    private enum Placeholder: String {
        case remaining, limit, used, date, label, day, days, period, wait
    }

    /// The two largest units, rounded up to the minute.
    private static func wait(_ seconds: Int64) -> String {
        let minutes = max(1, (seconds + 59) / 60)
        let units = [(minutes / 1440, "day"), (minutes % 1440 / 60, "hour"), (minutes % 60, "minute")]
        return units.drop { $0.0 == 0 }.prefix(2).filter { $0.0 > 0 }
            .map { "\($0.0) \($0.1)\($0.0 == 1 ? "" : "s")" }.joined(separator: " ")
    }

    private enum Part {
        case text(String)
        case placeholder(Placeholder)
    }

    /// Parsed once, because parsing costs more than filling in.
    private static let templates = Dictionary(
        uniqueKeysWithValues: Sentence.allCases.map { sentence in
            (sentence, (one: parts(of: sentence.one ?? sentence.other), other: parts(of: sentence.other)))
        }
    )

    private static func parts(of template: String) -> [Part] {
        var parts: [Part] = []
        var rest = template[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            guard let placeholder = Placeholder(rawValue: String(rest[rest.index(after: open)..<close])) else {
                preconditionFailure("a template has an unknown placeholder")
            }
            if open > rest.startIndex { parts.append(.text(String(rest[..<open]))) }
            parts.append(.placeholder(placeholder))
            rest = rest[rest.index(after: close)...]
        }
        return rest.isEmpty ? parts : parts + [.text(String(rest))]
    }
}
