import Mustache

/// The pages' templates, which are part of the program: nothing is read from a disk, and a template that cannot be parsed
/// stops the first test that draws any page.
struct PageLibrary: Sendable {
    enum Page: String, CaseIterable {
        case overview, user, find, confirm, problem
        case signIn = "sign-in"
    }

    private static let templates = [
        "frame": Frame.template,
        "notice": Notice.template,
        "time": TimeElement.template,
        "chart": OverviewPage.chartTemplate,
        "live": LiveView.template,
        "plans": PlansPart.template,
        "failed-events": FailedEventsPart.template,
        "first-steps": FirstSteps.template,
        "actions": UserPage.actionsTemplate,
        "records": UserPage.recordsTemplate,
        Page.overview.rawValue: OverviewPage.template,
        Page.user.rawValue: UserPage.template,
        Page.find.rawValue: FindPage.template,
        Page.signIn.rawValue: SignInPage.template,
        Page.confirm.rawValue: ConfirmPage.template,
        Page.problem.rawValue: ProblemPage.template,
    ]

    /// The library's own escaping goes by characters, and lets a `<` pass that is one with a scalar beside it, such as
    /// U+0600 before it or U+0301 after it. To a browser it is markup all the same.
    private struct EscapingScalars: MustacheContentType {
        func escapeText(_ text: String) -> String { escaped(text) }
    }

    private static let contentType = "PAGE"

    private let library: MustacheLibrary

    init() throws {
        MustacheContentTypes.register(EscapingScalars(), named: PageLibrary.contentType)
        var library = MustacheLibrary()
        for (name, template) in PageLibrary.templates {
            // In front of every one: a partial does not take over the content type of what it stands in.
            try library.register("{{% CONTENT_TYPE:\(PageLibrary.contentType)}}\n" + template, named: name)
        }
        self.library = library
    }

    /// Everything that a page's values say is escaped, but for charts, which escape by themselves.
    func render(_ page: Page, _ values: Any) -> String {
        guard let html = library.render(values, withTemplate: page.rawValue) else {
            preconditionFailure("every page is registered")
        }
        return html
    }
}
