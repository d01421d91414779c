import Hummingbird
import ServiceCore

/// Decides who may use the paths of the API: by token, and without one by the host and by the site of a browser's page.
struct RequestGuard: Sendable {
    let access: AccessControl
    let hostCheck: HostCheckMiddleware
    let otherSite: OtherSiteMiddleware

    /// - Returns: a group of guarded routes.
    func group(_ path: RouterPath = "", of router: some RouterMethods<HTTPContext>) -> RouterGroup<HTTPContext> {
        router.group(path).add(middleware: AuthenticationMiddleware(access: access)).add(middleware: hostCheck)
            .add(middleware: otherSite)
    }
}
