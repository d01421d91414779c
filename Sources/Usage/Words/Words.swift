/// All words in all languages at one revision of `headroom.words`. They are made anew when the rows change.
public final class Words: Sendable {
    /// A row of `headroom.words`.
    public struct Row: Sendable, Equatable {
        public var language: LanguageTag
        public var sentence: Sentence
        public var forms: WordForms

        public init(_ language: LanguageTag, _ sentence: Sentence, _ forms: WordForms) {
            self.language = language
            self.sentence = sentence
            self.forms = forms
        }
    }

    private let rows: [LanguageTag: [Sentence: WordForms]]
    /// The vocabularies by the languages that have rows.
    private let vocabularies: [LanguageTag: Vocabulary]
    /// The vocabulary for requests that name no language, or none that has rows.
    public let standard: Vocabulary

    /// - Parameters:
    ///   - standard: the setting `language`. A word that a language lacks is in this one, and otherwise in English.
    ///   - reject: called with each row whose template is not valid; the word falls back.
    public init(_ rows: [Row], standard: LanguageTag, reject: (Row) -> Void = { _ in }) {
        var templates: [LanguageTag: [Sentence: Template]] = [:]
        for row in rows {
            if let template = Template(row.forms, of: row.sentence, in: row.language) {
                templates[row.language, default: [:]][row.sentence] = template
            } else {
                reject(row)
            }
        }
        func vocabulary(of language: LanguageTag) -> Vocabulary {
            let chain = language.lookup + standard.lookup + [.english]
            let found = chain.compactMap { templates[$0] }
            return Vocabulary(language) { sentence in
                for words in found { if let template = words[sentence] { return template } }
                return Words.compiledIn(sentence)
            }
        }
        let vocabularies = Dictionary(uniqueKeysWithValues: templates.keys.map { ($0, vocabulary(of: $0)) })
        let found = standard.lookup.first { vocabularies[$0] != nil } ?? .english
        self.rows = Dictionary(grouping: rows, by: \.language).mapValues { rows in
            Dictionary(rows.map { ($0.sentence, $0.forms) }) { first, _ in first }
        }
        self.vocabularies = vocabularies
        self.standard = vocabularies[found] ?? vocabulary(of: found)
    }

    private static func compiledIn(_ sentence: Sentence) -> Template {
        let template = ShippedWords.english[sentence].flatMap { Template($0, of: sentence, in: .english) }
        guard let template else { preconditionFailure("en.properties has every word") }
        return template
    }

    /// The languages that have rows.
    public var languages: [LanguageTag] { vocabularies.keys.sorted { $0.text < $1.text } }

    /// Returns the vocabulary of a request's language, or of the nearest more general one with rows, or the standard
    /// one.
    @inline(__always)
    public func vocabulary(for language: LanguageTag?) -> Vocabulary {
        guard let language else { return standard }
        return available(language) ?? standard
    }

    /// Returns `vocabulary(for:)` of the language, with dates in the time zone.
    public func vocabulary(for options: SentenceOptions) -> Vocabulary {
        vocabulary(for: options.language).with(timeZone: options.timeZone)
    }

    /// Returns `vocabulary(for:)`, or nil instead of the standard vocabulary.
    public func available(_ language: LanguageTag) -> Vocabulary? {
        if let vocabulary = vocabularies[language] { return vocabulary }
        return language.lookup.lazy.compactMap { self.vocabularies[$0] }.first
    }

    /// Whether a language's row of the word is another one than this release ships. It is false without a row.
    public func isEdited(_ sentence: Sentence, in language: LanguageTag) -> Bool {
        guard let forms = rows[language]?[sentence] else { return false }
        return forms != Words.shipped.rows[language]?[sentence]
    }

    /// The words as the service ships them, before operators edit them.
    public static let shipped = Words(ShippedWords.rows, standard: .english)
}
