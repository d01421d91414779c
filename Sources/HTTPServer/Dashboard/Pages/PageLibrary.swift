import Mustache

/// The pages' templates, compiled into the program.
struct PageLibrary: Sendable {
    enum Page: String, CaseIterable {
        case overview, user, find, words, confirm, event, problem
        case userList = "user-list"
        case signIn = "sign-in"
    }

    private static let suffix = ".mustache"

    /// Each file of Templates/ by its name without the suffix.
    static let templates = Dictionary(
        uniqueKeysWithValues: EmbeddedTexts.all.compactMap { name, text in
            name.hasSuffix(suffix) ? (String(name.dropLast(suffix.count)), text) : nil
        }
    )

    /// Mustache's own escaping works on characters and misses a `<` that forms one character with a combining scalar,
    /// such as U+0600 before it or U+0301 after it. Browsers take such a `<` as markup.
    private struct EscapingScalars: MustacheContentType {
        func escapeText(_ text: String) -> String { escaped(text) }
    }

    private static let contentType = "PAGE"

    private let library: MustacheLibrary

    init() throws {
        MustacheContentTypes.register(EscapingScalars(), named: PageLibrary.contentType)
        var library = MustacheLibrary()
        for (name, template) in PageLibrary.templates {
            // In every template: a partial does not inherit the content type.
            let text = "{{% CONTENT_TYPE:\(PageLibrary.contentType)}}\n" + template
            try library.register(text, named: name)
        }
        self.library = library
    }

    /// Escapes all values except charts, which escape their own texts.
    func render(_ page: Page, _ values: Any) -> String {
        guard let html = library.render(values, withTemplate: page.rawValue) else {
            preconditionFailure("no template of the name \(page.rawValue)")
        }
        return html
    }
}
