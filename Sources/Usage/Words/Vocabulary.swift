/// All words as users of one language see them: each in this language, or in the one that it falls back to.
///
/// It is a class, so that an answer's encoder passes on a reference.
public final class Vocabulary: Sendable {
    /// The language for which the vocabulary was made.
    public let language: LanguageTag
    /// The time zone of dates in sentences. Nil means the plan's, and UTC for a plan without one.
    public let timeZone: CivilTimeZone?
    /// The templates by the words' ordinals.
    private let templates: [Template]
    /// The texts of `Sentence.months`, in their order.
    private let months: [String]
    private let unlimited: String

    /// - Parameter template: returns the template of any word. All words have one, at least in English.
    init(_ language: LanguageTag, template: (Sentence) -> Template) {
        self.language = language
        timeZone = nil
        templates = Sentence.allCases.map(template)
        months = Sentence.months.map { Vocabulary.text(template($0)) }
        unlimited = Vocabulary.text(template(.unlimited))
    }

    private init(_ other: Vocabulary, timeZone: CivilTimeZone) {
        language = other.language
        self.timeZone = timeZone
        (templates, months, unlimited) = (other.templates, other.months, other.unlimited)
    }

    /// Returns the same words with dates in a time zone; nil is the plan's.
    public func with(timeZone: CivilTimeZone?) -> Vocabulary {
        timeZone.map { Vocabulary(self, timeZone: $0) } ?? self
    }

    /// Returns the text of a word without blanks.
    private static func text(_ template: Template) -> String {
        template.parts(for: nil).reduce(into: "") { text, part in
            if case .text(let literal) = part { text += literal }
        }
    }

    /// The language of a word's row, which is another one if the word falls back.
    public func language(of sentence: Sentence) -> LanguageTag { self[sentence].language }

    private subscript(_ sentence: Sentence) -> Template { templates[sentence.ordinal] }

    func append(_ sentence: Sentence, _ values: Phrase.Values, to text: inout TextWriter) {
        for part in self[sentence].parts(for: sentence.number(in: values)) {
            switch part {
            case .text(let literal): text.append(literal)
            case .blank(.remaining): append(values.allowance.remaining, to: &text)
            case .blank(.limit): append(values.allowance.limit, to: &text)
            case .blank(.used): text.append(values.allowance.used)
            case .blank(.requested): if let requested = values.requested { text.append(requested) }
            case .blank(.date):
                if let date = values.date { append(date.date, withYear: date.isInOtherYear, to: &text) }
            case .blank(.wait): if let seconds = values.waitSeconds { append(waitSeconds: seconds, to: &text) }
            case .blank(.label): text.append(values.modelLabel ?? values.entitlement?.plan.label ?? "")
            case .blank(.banner): text.append(values.banner ?? "")
            case .blank(.fallback): text.append(values.fallback ?? "")
            case .blank(.day): if let day = values.day { text.append(day) }
            case .blank(.days): if let days = values.days { text.append(days) }
            case .blank(.period): text.append(values.entitlement?.period.label ?? "")
            // Only the words from which sentences are made have these blanks.
            case .blank(.month), .blank(.year), .blank(.n), .blank(.larger), .blank(.smaller): break
            }
        }
    }

    /// - Parameter count: nil is unlimited.
    private func append(_ count: Int?, to text: inout TextWriter) {
        if let count { text.append(count) } else { text.append(unlimited) }
    }

    private func append(_ date: CivilDate, withYear: Bool, to text: inout TextWriter) {
        guard withYear else { return append(date, to: &text) }
        for part in self[.dateWithYear].parts(for: nil) {
            switch part {
            case .text(let literal): text.append(literal)
            case .blank(.date): append(date, to: &text)
            case .blank(.year): text.append(date.year)
            case .blank: break
            }
        }
    }

    private func append(_ date: CivilDate, to text: inout TextWriter) {
        for part in self[.date].parts(for: date.day) {
            switch part {
            case .text(let literal): text.append(literal)
            case .blank(.month): text.append(months[date.month - 1])
            case .blank(.day): text.append(date.day)
            case .blank: break
            }
        }
    }

    /// Returns a date as sentences show it: `December 1`, or `December 1, 2026`.
    public func text(_ date: CivilDate, withYear: Bool = false) -> String {
        TextWriter.text { append(date, withYear: withYear, to: &$0) }
    }

    func text(waitSeconds seconds: Int64) -> String { TextWriter.text { append(waitSeconds: seconds, to: &$0) } }

    func text(_ amount: Wait.Amount) -> String { TextWriter.text { append(amount, to: &$0) } }

    private func append(waitSeconds seconds: Int64, to text: inout TextWriter) {
        let wait = Wait(seconds: seconds)
        guard let smaller = wait.smaller else { return append(wait.larger, to: &text) }
        for part in self[.waitJoined].parts(for: nil) {
            switch part {
            case .text(let literal): text.append(literal)
            case .blank(.larger): append(wait.larger, to: &text)
            case .blank(.smaller): append(smaller, to: &text)
            case .blank: break
            }
        }
    }

    private func append(_ amount: Wait.Amount, to text: inout TextWriter) {
        for part in self[amount.unit].parts(for: amount.number) {
            switch part {
            case .text(let literal): text.append(literal)
            case .blank: text.append(amount.number)
            }
        }
    }
}

/// A time as sentences show it: in minutes, rounded up, by its largest unit and the one below.
struct Wait: Equatable {
    struct Amount: Equatable {
        /// `days`, `hours` or `minutes`.
        var unit: Sentence
        var number: Int
    }

    let larger: Amount
    /// The rest in the unit below; nil if there is none.
    let smaller: Amount?

    init(seconds: Int64) {
        let minutes = max(1, Int(clamping: floorDivide(max(0, seconds) - 1, 60) + 1))
        let (days, hours) = (minutes / 1_440, minutes % 1_440 / 60)
        if days > 0 {
            larger = Amount(unit: .days, number: days)
            smaller = hours > 0 ? Amount(unit: .hours, number: hours) : nil
        } else if hours > 0 {
            larger = Amount(unit: .hours, number: hours)
            smaller = minutes % 60 > 0 ? Amount(unit: .minutes, number: minutes % 60) : nil
        } else {
            larger = Amount(unit: .minutes, number: minutes)
            smaller = nil
        }
    }
}

extension Sentence {
    /// The position in `allCases`, without a search: an enumeration without payloads is stored as the number of its
    /// case, in the order of declaration (Swift's ABI, TypeLayout, "C-Like Enums"). Each sentence of an answer is
    /// looked up by it.
    @inline(__always)
    var ordinal: Int { Int(unsafeBitCast(self, to: UInt8.self)) }

    /// The number that chooses among the forms. It is nil if it is not known, and without limit.
    fileprivate func number(in values: Phrase.Values) -> Int? {
        switch numberBlank {
        case .remaining: values.allowance.remaining
        case .used: values.allowance.used
        case .limit: values.allowance.limit
        default: nil
        }
    }
}
