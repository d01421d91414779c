/// The templates of a word in one language, as a row of `headroom.words` has them.
public struct WordForms: Sendable, Equatable {
    public var one: String?
    public var few: String?
    public var many: String?
    public var other: String

    public init(one: String? = nil, few: String? = nil, many: String? = nil, other: String) {
        self.one = one
        self.few = few
        self.many = many
        self.other = other
    }

    /// Returns the template of a category; a missing form is `other`.
    func template(for category: PluralCategory) -> String {
        switch category {
        case .one: one ?? other
        case .few: few ?? other
        case .many: many ?? other
        case .other: other
        }
    }
}

/// The forms of a word, parsed once, because parsing costs more than filling in. It is a class, because a copied struct
/// would count references to each form.
final class Template: Sendable {
    enum Part: Sendable {
        case text(String)
        case blank(Blank)
    }

    private let one, few, many, other: [Part]
    private let rule: PluralRule
    /// The language of the row from which the forms come.
    let language: LanguageTag

    /// Parses the forms. It is nil if one has a blank that the word does not have, or braces without a pair. The
    /// database refuses such a template.
    init?(_ forms: WordForms, of sentence: Sentence, in language: LanguageTag) {
        let parsed = PluralCategory.allCases.compactMap {
            Template.parts(of: forms.template(for: $0), blanks: sentence.blanks)
        }
        guard parsed.count == PluralCategory.allCases.count else { return nil }
        (one, few, many, other) = (parsed[0], parsed[1], parsed[2], parsed[3])
        rule = PluralRule(language)
        self.language = language
    }

    @inline(__always)
    func parts(for number: Int?) -> [Part] {
        // Most languages have two forms, which need no other rule.
        if rule == .exactlyOne { return number == 1 ? one : other }
        return switch rule.category(of: number) {
        case .one: one
        case .few: few
        case .many: many
        case .other: other
        }
    }

    /// Returns the template's parts; nil if it has another blank, or braces without a pair.
    static func parts(of template: String, blanks: [Blank]) -> [Part]? {
        var parts: [Part] = []
        var rest = template[...]
        // Bytes are found faster than characters.
        let (open, close) = (UInt8(ascii: "{"), UInt8(ascii: "}"))
        while let brace = rest.utf8.firstIndex(where: { $0 == open || $0 == close }) {
            guard rest.utf8[brace] == open, let end = rest.utf8[brace...].firstIndex(of: close),
                let blank = Blank(rawValue: String(rest[rest.utf8.index(after: brace)..<end])), blanks.contains(blank)
            else { return nil }
            if brace > rest.startIndex { parts.append(.text(String(rest[..<brace]))) }
            parts.append(.blank(blank))
            rest = rest[rest.utf8.index(after: end)...]
        }
        return rest.isEmpty ? parts : parts + [.text(String(rest))]
    }
}
