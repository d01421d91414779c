/// The words that `headroom migrate` writes: each language is complete, and has one word for "message" throughout.
public enum ShippedWords {
    public static let rows: [Words.Row] = languages.flatMap { language, words in
        Sentence.allCases.map { sentence in
            guard let forms = words[sentence] else {
                preconditionFailure("\(language) has no word \(sentence.rawValue)")
            }
            return Words.Row(language, sentence, forms)
        }
    }

    private static let languages: [(LanguageTag, [Sentence: WordForms])] =
        [(.english, english)]
        + [
            ("de", german), ("es", spanish), ("fr", french), ("ja", japanese), ("pl", polish), ("pt", portuguese),
        ].map { name, words in
            guard let language = LanguageTag(name) else { preconditionFailure("\(name) is no language") }
            return (language, words)
        }

    private static let english = Dictionary(uniqueKeysWithValues: Sentence.allCases.map { ($0, $0.english) })
}
