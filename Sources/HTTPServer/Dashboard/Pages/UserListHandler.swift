import HTTPTypes
import Hummingbird

/// The page of the users in a tier or on a plan.
struct UserListHandler: Sendable {
    let authenticator: ViewerAuthenticator
    let figures: DashboardFigures
    let pages: PageLibrary

    func show(_ request: Request, authorized viewer: Viewer) async throws -> Response {
        let fields = request.query
        let number = fields["page"].map { Int($0) ?? 0 } ?? 1
        guard let query = UserListQuery(fields), (1...UserListQuery.pagesMaximum).contains(number) else {
            throw Problem.unknownList
        }
        guard let figures = await figures.users(query) else { throw Problem.unknownList }
        let presenter = UserListPresenter(figures: figures, page: number)
        guard presenter.hasPage else {
            // The list has become shorter since the link was shown.
            return PageResponse.redirect(to: query.path(), cookie: viewer.newCookie)
        }
        var frame = authenticator.frame("Users", viewer)
        frame.isUsers = true
        return PageResponse.page(
            pages.render(.userList, presenter.page(frame)),
            presenter.isIncomplete ? .serviceUnavailable : .ok,
            cookie: viewer.newCookie
        )
    }
}

extension Problem {
    static let unknownList = Problem(
        .notFound,
        code: "NOTFOUND",
        "there is no such list; it has a billing period, a tier, a plan and a page that exist"
    )
}
