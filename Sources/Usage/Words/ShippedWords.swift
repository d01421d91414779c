/// The words that `headroom migrate` writes: those of the files in `Languages/`.
public enum ShippedWords {
    static let files: [LanguageFile] = {
        do {
            return try LanguageFile.read(EmbeddedTexts.all)
        } catch {
            // A failed precondition would not say this in a release build.
            fatalError("\(error)")
        }
    }()

    public static let rows: [Words.Row] = files.flatMap { file in
        Sentence.allCases.compactMap { sentence in
            file.words[sentence].map { Words.Row(file.language, sentence, $0) }
        }
    }

    /// The words in English, to which all languages fall back.
    public static let english = files.first { $0.language == .english }?.words ?? [:]
}

extension LanguageTag {
    /// The languages in which this release ships words.
    public static var shipped: [LanguageTag] { Words.shipped.languages }
}
