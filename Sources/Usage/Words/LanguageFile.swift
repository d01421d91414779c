/// The words of a language as a file of `Languages/` has them, in the form of Java's properties, which programs for
/// translators read and write:
///
///     # A comment.
///     plurals = one, other
///     avoid = Session, Chat
///     gentle.one = You have {remaining} conversation left this month
///     gentle.other = You have {remaining} conversations left this month
///     state_free = Free
///
/// A key is a word, with the category of its plural form where it has several. `plurals` has the categories that words
/// of the language may have, and `months` the words `month_1` to `month_12`. `avoid` has texts that no word has,
/// because they are of another voice; tests look for them.
struct LanguageFile {
    /// It is written in the form of compiler errors.
    struct Mistake: Error, CustomStringConvertible {
        var file: String
        var line = 1
        var message: String

        var description: String { "\(file):\(line): error: \(message)" }
    }

    let language: LanguageTag
    private(set) var plurals: [PluralCategory] = []
    private(set) var avoided: [Substring] = []
    private(set) var words: [Sentence: WordForms] = [:]

    /// - Parameter name: the language's tag and `.properties`.
    init(name: String, text: String) throws(Mistake) {
        guard let language = LanguageTag(name.prefix { $0 != "." }), name == "\(language).properties" else {
            throw Mistake(file: name, message: "name the file TAG.properties, after \(LanguageTag.form)")
        }
        self.language = language
        var forms: [Sentence: [PluralCategory: String]] = [:]
        var lines: [Sentence: Int] = [:]
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if line.isEmpty || line.hasPrefix("#") { continue }
            func mistake(_ message: String) -> Mistake { Mistake(file: name, line: index + 1, message: message) }
            let parts = line.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].last == " ", parts[1].first == " ", parts[1].last != " " else {
                throw mistake("write `key = text`, without a space after the text")
            }
            let (key, text) = (String(parts[0].dropLast()), String(parts[1].dropFirst()))
            var entries = [(key, text)]
            switch key {
            case "avoid": (avoided, entries) = (text.split(separator: ", "), [])
            case "months": entries = zip(1..., text.split(separator: ", ")).map { ("month_\($0)", String($1)) }
            case "plurals":
                plurals = PluralCategory.allCases.filter { text.split(separator: ", ").contains($0.rawValue[...]) }
                entries = []
            default: break
            }
            for (key, text) in entries {
                let names = key.split(separator: ".", maxSplits: 1).map { String($0) } + ["other"]
                guard let sentence = Sentence(rawValue: names[0]) else { throw mistake("there is no word \(key)") }
                guard let category = PluralCategory(rawValue: names[1]), plurals.contains(category) else {
                    throw mistake("the line `plurals` above lacks the form of \(key)")
                }
                guard Template.parts(of: text, blanks: sentence.blanks) != nil else {
                    let blanks = sentence.blanks.map { "{\($0.rawValue)}" }
                    throw mistake("an unknown blank, or a brace without its pair; \(key) may have \(blanks)")
                }
                let other = forms[sentence, default: [:]].updateValue(text, forKey: category)
                if other != nil { throw mistake("\(key) is there twice") }
                lines[sentence] = index + 1
            }
        }
        for (sentence, forms) in forms {
            guard let other = forms[.other] else {
                throw Mistake(file: name, line: lines[sentence] ?? 1, message: "\(sentence.rawValue).other is missing")
            }
            words[sentence] = WordForms(one: forms[.one], few: forms[.few], many: forms[.many], other: other)
        }
    }

    /// Reads files by their names. Only a language with a more general one, such as `pt-BR` with `pt`, may lack words.
    static func read(_ texts: [String: String]) throws(Mistake) -> [LanguageFile] {
        var files: [LanguageFile] = []
        for (name, text) in texts { files.append(try LanguageFile(name: name, text: text)) }
        files.sort { $0.language.text < $1.language.text }
        for file in files where !files.contains(where: { file.language.lookup.dropFirst().contains($0.language) }) {
            guard let missing = Sentence.allCases.first(where: { file.words[$0] == nil }) else { continue }
            throw Mistake(file: "\(file.language).properties", message: "\(missing.rawValue) is missing")
        }
        return files
    }
}
