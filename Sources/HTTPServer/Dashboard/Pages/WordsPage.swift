import Usage

/// All sentences as users of one language see them.
struct WordsPage {
    struct Word {
        var name: String
        /// Where several forms differ, each with its number.
        var examples: [Example]
        /// The language that the word falls back to; nil if it has a row.
        var fallback: String?
        /// Its row is not as it was shipped.
        var isEdited: Bool
    }

    struct Example {
        /// `1:`; nil for a word with one form.
        var number: String?
        var text: String
        /// Of the text, for screen readers and fonts.
        var language: String
    }

    var frame: Frame
    var notices: [Notice]
    var languages: [UserPage.Option]
    var heading: String
    /// How many words fall back, and how many are edited.
    var summary: String
    var words: [Word]
}

/// Turns words into the page's texts.
struct WordsPresenter {
    let words: Words
    let language: LanguageTag

    /// Nil if the language has no rows.
    init?(_ words: Words, language: LanguageTag?) {
        let language = language ?? words.standard.language
        guard words.languages.contains(language) || language == words.standard.language else { return nil }
        self.words = words
        self.language = language
    }

    func page(_ frame: Frame, notices: [Notice]) -> WordsPage {
        let vocabulary = words.vocabulary(for: language)
        let shown = Sentence.allCases.map { word($0, vocabulary) }
        let (fallbacks, edits) = (shown.count { $0.fallback != nil }, shown.count { $0.isEdited })
        let languages = words.languages.contains(language) ? words.languages : words.languages + [language]
        return WordsPage(
            frame: frame,
            notices: notices,
            languages: languages.map {
                let text = $0 == words.standard.language ? "\($0) (standard)" : $0.text
                return UserPage.Option(value: $0.text, text: text, isSelected: $0 == language)
            },
            heading: "Sentences in \(language)",
            summary: "\(shown.count) words: \(WordsPresenter.phrase(fallbacks, "falls back", "fall back")) to another "
                + "language, \(edits == 0 ? "none" : "\(edits)") edited.",
            words: shown
        )
    }

    private static func phrase(_ count: Int, _ one: String, _ many: String) -> String {
        switch count {
        case 0: "none \(one)"
        case 1: "1 \(one)"
        default: "\(count) \(many)"
        }
    }

    private func word(_ sentence: Sentence, _ vocabulary: Vocabulary) -> WordsPage.Word {
        let origin = vocabulary.language(of: sentence)
        let examples = vocabulary.examples(of: sentence)
        return WordsPage.Word(
            name: sentence.rawValue,
            examples: examples.map {
                let number = examples.count > 1 ? $0.number.map { "\($0):" } : nil
                return WordsPage.Example(number: number, text: $0.text, language: origin.text)
            },
            fallback: origin == language ? nil : origin.text,
            isEdited: words.isEdited(sentence, in: language)
        )
    }
}
