import HTTPTypes
import Hummingbird
import LineProtocol
import ServiceCore
import Usage

/// The pages under /dashboard.
struct DashboardRoutes: RouteProvider {
    private let service: ServiceDependencies
    private let figures: DashboardFigures
    private let pages: PageLibrary
    private let authenticator: ViewerAuthenticator
    private let hostCheck: HostCheckMiddleware
    private let liveStream = LiveStream()
    private let signIn: SignInHandler
    private let actions: UserActionHandler
    private let events: EventHandler
    private let lists: UserListHandler
    private let words: WordsHandler
    private let namespace: UserNamespace?

    /// - Throws: if a template is malformed.
    init(_ dependencies: HTTPServerDependencies) throws {
        service = dependencies.service
        namespace = dependencies.service.configuration.settings.counting.userNamespace
        figures = DashboardFigures(dependencies)
        pages = try PageLibrary()
        authenticator = ViewerAuthenticator(access: service.access, isSecure: service.configuration.httpHasTLS)
        hostCheck = dependencies.hostCheck
        let forms = FormDecoder(bodies: BodyDecoder(dependencies.configuration), authenticator: authenticator)
        signIn = SignInHandler(authenticator: authenticator, forms: forms, pages: pages)
        actions = UserActionHandler(
            authenticator: authenticator,
            forms: forms,
            figures: figures,
            engine: dependencies.engine,
            pages: pages
        )
        events = EventHandler(
            authenticator: authenticator,
            forms: forms,
            figures: figures,
            sessions: dependencies.webhookSessions,
            requestTimeout: dependencies.configuration.settings.requestTimeout,
            pages: pages
        )
        lists = UserListHandler(authenticator: authenticator, figures: figures, pages: pages)
        words = WordsHandler(authenticator: authenticator, figures: figures, pages: pages)
    }

    func add(to router: Router<HTTPContext>) {
        let group = router.group("dashboard")
            .add(middleware: PageHeadersMiddleware(problemPage: problemPage))
        for asset in Asset.all {
            group.get(RouterPath(asset.path)) { request, _ in asset.body.response(to: request) }
        }
        let pages = group.add(middleware: AuthenticationMiddleware(access: service.access))
            .add(middleware: ProblemPageMiddleware(page: problemPage))
            .add(middleware: hostCheck)
        pages.get("sign-in", use: signIn.show)
        pages.post("sign-in", use: signIn.signIn)
        pages.post("sign-out", use: signIn.signOut)
        pages.get(use: overview)
        pages.get("live", use: live)
        pages.get("list") { request, context in
            try await lists.show(request, authorized: authorize(request, context))
        }
        pages.get("words") { request, context in
            try await words.show(request, authorized: authorize(request, context))
        }
        pages.get("event") { request, context in
            try await events.show(request, authorized: authorize(request, context))
        }
        pages.post("event/replay") { request, context in
            try await events.replay(request, context, authorized: authorize(request, context))
        }
        pages.get("users", use: find)
        pages.get("users/:user", use: user)
        pages.post("users/:user/:action") { request, context in
            try await actions.submit(
                request,
                context,
                authorized: authorize(request, context),
                user: context.dashboardUser(in: namespace)
            )
        }
        // For a form's address in the address bar, as after a reload.
        pages.get("users/:user/:action") { _, context in
            PageResponse.redirect(to: "/dashboard/users/\(try context.dashboardUser(in: namespace))")
        }
        pages.get("**") { _, _ -> Response in throw Problem.notFound }
        // For a person that enters the host and port without a path.
        router.get("/") { _, _ -> Response in PageResponse.redirect(to: ReturnPath.overview) }
    }

    // MARK: Pages

    @Sendable
    private func overview(_ request: Request, _ context: HTTPContext) async throws -> Response {
        let viewer = try authorize(request, context)
        let label = request.query["period"] ?? ""
        guard let period = label.isEmpty ? BillingPeriod.open : BillingPeriod(label),
            let figures = await self.figures.overview(period)
        else { throw Problem.unknownPeriod }
        let presenter = OverviewPresenter(figures: figures, firstSteps: firstSteps, mayChange: viewer.canChange)
        var frame = authenticator.frame("Overview", viewer)
        frame.isOverview = true
        let status: HTTPResponse.Status = presenter.isIncomplete ? .serviceUnavailable : .ok
        return PageResponse.page(pages.render(.overview, presenter.page(frame)), status, cookie: viewer.newCookie)
    }

    @Sendable
    private func find(_ request: Request, _ context: HTTPContext) throws -> Response {
        let viewer = try authorize(request, context)
        let input = ActionForm.trimmed(request.query["user"] ?? "")
        if let user = UserID(input, in: namespace) {
            return PageResponse.redirect(to: "/dashboard/users/\(user)", cookie: viewer.newCookie)
        }
        return findPage(input, viewer, input.isEmpty ? .ok : .badRequest)
    }

    /// - Parameter input: empty, or not a user's id.
    private func findPage(_ input: String, _ viewer: Viewer, _ status: HTTPResponse.Status) -> Response {
        var frame = authenticator.frame("Find a user", viewer)
        frame.isUsers = true
        let page = FindPage(frame, input: input, namespace: namespace)
        return PageResponse.page(pages.render(.find, page), status, cookie: viewer.newCookie)
    }

    @Sendable
    private func user(_ request: Request, _ context: HTTPContext) async throws -> Response {
        let viewer = try authorize(request, context)
        guard let user = context.pathUser(in: namespace) else {
            return findPage(context.pathParameter("user") ?? "", viewer, .notFound)
        }
        let notice = request.query["result"]
            .flatMap { ActionResult($0, user: user, viewer: viewer, signer: authenticator.signer) }
            .map(\.notice)
        return await actions.userPage(
            user,
            viewer,
            notices: [notice].compactMap(\.self),
            partSearch: PartSearch(request.query["part"], in: namespace)
        )
    }

    @Sendable
    private func live(_ request: Request, _ context: HTTPContext) throws -> Response {
        guard authenticator.viewer(request, context).canView else {
            throw Problem(ReplyError.authenticationRequired)
        }
        let (authenticator, service, figures) = (authenticator, service, figures)
        @Sendable func endReason() -> String? {
            if service.draining.isSet { return "This instance is shutting down; reload the page in a moment." }
            var context = context
            // A bearer token's present permissions, which may have changed since the stream was opened.
            if let identity = context.identity {
                let present = service.access.policy.identity(ofToken: identity.tokenID)
                context.permissions = present?.permissions ?? .anonymous
            } else {
                context.permissions = service.access.policy.permissionsWithoutToken
            }
            let canView = authenticator.viewer(request, context).canView
            return canView ? nil : "You are signed out. Reload the page to sign in."
        }
        return try liveStream.response(figures: { figures.live }, endReason: endReason)
    }

    // MARK: Authorization

    /// - Throws: a redirect to the sign-in page, or 403 if the viewer's token lacks the scope.
    private func authorize(_ request: Request, _ context: HTTPContext) throws -> Viewer {
        let viewer = authenticator.viewer(request, context)
        if viewer.canView { return viewer }
        guard viewer.identity == nil else {
            throw Problem(
                ReplyError(
                    code: .forbidden,
                    text: "the token has no scope for the dashboard; it needs dashboard or operator"
                )
            )
        }
        let path = request.method == .get ? ReturnPath.validated(request.uri.description) : ReturnPath.overview
        throw PageResponse(response: signIn.redirect(returningTo: path, viewer))
    }

    /// Without a command if the port is not known in advance (0).
    private var firstSteps: FirstSteps {
        let listen = service.configuration.listen
        guard listen.port != 0 else { return FirstSteps(command: nil) }
        return FirstSteps(
            command: listen.askCommand(
                "CONSUME 7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11",
                speaksTLS: service.tls != nil,
                requiresToken: service.access.isRequired
            )
        )
    }

    // MARK: Errors

    @Sendable
    private func problemPage(_ problem: Problem, _ request: Request, _ context: HTTPContext) -> Response {
        if problem.status == .internalServerError {
            // The page says that the log has more.
            context.logger.error("a page could not be shown", metadata: ["error": "\(problem.detail)"])
        }
        let viewer = authenticator.viewer(request, context)
        var frame = authenticator.frame(problem.heading, viewer)
        // Under an unknown host name, every link would be refused as well.
        frame.hasNavigation = viewer.canView && problem.status != .misdirectedRequest
        let page = ProblemPage(
            frame: frame,
            heading: problem.heading,
            text: problem.detail.sentence,
            advice: problem.advice
        )
        var response = PageResponse.page(pages.render(.problem, page), problem.status, cookie: viewer.newCookie)
        for field in problem.headers { response.headers[field.name] = field.value }
        return response
    }
}

extension HTTPContext {
    /// The user in the path of a form.
    fileprivate func dashboardUser(in namespace: UserNamespace?) throws(Problem) -> UserID {
        guard let user = pathUser(in: namespace) else {
            throw Problem(.notFound, code: "NOTFOUND", FindPage.invalidID(namespace))
        }
        return user
    }
}
