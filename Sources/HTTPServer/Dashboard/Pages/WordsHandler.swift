import HTTPTypes
import Hummingbird
import Usage

/// The page of all sentences: `GET /dashboard/words`.
struct WordsHandler: Sendable {
    let authenticator: ViewerAuthenticator
    let figures: DashboardFigures
    let pages: PageLibrary

    func show(_ request: Request, authorized viewer: Viewer) async throws -> Response {
        let field = request.query["lang"] ?? ""
        // Other instances and the database may be ahead of the last answer of this one.
        let isCurrent = await figures.readWords()
        guard let presenter = WordsPresenter(figures.words.current, language: LanguageTag(field)),
            field.isEmpty || LanguageTag(field) != nil
        else { throw Problem.unknownLanguage }
        var frame = authenticator.frame("Words", viewer)
        frame.isWords = true
        let notices =
            isCurrent
            ? []
            : [
                Notice(
                    .warning,
                    "The words could not be read.",
                    "These are the last ones that answers were written with."
                )
            ]
        return PageResponse.page(
            pages.render(.words, presenter.page(frame, notices: notices)),
            isCurrent ? .ok : .serviceUnavailable,
            cookie: viewer.newCookie
        )
    }
}

extension Problem {
    static let unknownLanguage = Problem(
        .notFound,
        code: "NOTFOUND",
        "there are no words in this language; rows of headroom.words with its tag add it"
    )
}
