import HTTPTypes
import HeadroomServer
import Hummingbird
import LineProtocol
import NIOCore
import Usage

/// Pages for people.
struct DashboardRoutes: RouteCollecting {
    private let parts: ServiceParts
    private let figures: DashboardFigures
    private let pages: PageLibrary
    private let reception: Reception
    private let openPort: OpenPort
    private let liveStream = LiveStream()
    private let signIn: SignInForms
    private let actions: ActionForms

    init(_ dependencies: HTTPServerDependencies) {
        parts = dependencies.parts
        figures = DashboardFigures(dependencies)
        do {
            pages = try PageLibrary()
        } catch {
            preconditionFailure("a template cannot be parsed: \(error)")
        }
        reception = Reception(access: parts.access, isSecure: parts.configuration.httpHasTLS)
        openPort = dependencies.openPort
        let forms = FormReading(reading: BodyDecoder(dependencies.configuration), reception: reception)
        signIn = SignInForms(reception: reception, forms: forms, pages: pages)
        actions = ActionForms(
            reception: reception,
            forms: forms,
            figures: figures,
            store: dependencies.store,
            pages: pages
        )
    }

    func add(to router: Router<HTTPContext>) {
        let group = router.group("dashboard")
            .add(middleware: PageHeaders(problemPage: problemPage))
        for asset in Asset.all {
            group.get(RouterPath(asset.path)) { request, _ in DashboardRoutes.answer(asset, request) }
        }
        let open = group.add(middleware: Authenticating(access: parts.access))
            .add(middleware: ProblemPages(page: problemPage))
            .add(middleware: openPort)
        open.get("sign-in", use: signIn.show)
        open.post("sign-in", use: signIn.take)
        open.post("sign-out", use: signIn.leave)
        open.get(use: overview)
        open.get("live", use: live)
        open.get("users", use: find)
        open.get("users/:user", use: user)
        open.post("users/:user/:action") { request, context in
            try await actions.take(
                request,
                context,
                admitted: admit(request, context),
                user: DashboardRoutes.user(context)
            )
        }
        // What a browser is led to by the address of a form.
        open.get("users/:user/:action") { _, context in
            PageAnswer.redirect(to: "/dashboard/users/\(try DashboardRoutes.user(context))")
        }
        open.get("**") { _, _ -> Response in throw Problem.notFound }
        // Who types the address without a path is a person.
        router.get("/") { _, _ -> Response in PageAnswer.redirect(to: Destination.overview) }
    }

    // MARK: Pages

    @Sendable
    private func overview(_ request: Request, _ context: HTTPContext) async throws -> Response {
        let visitor = try admit(request, context)
        let named = request.query["period"] ?? ""
        guard let period = named.isEmpty ? BillingPeriod.open : BillingPeriod(named),
            let figures = await self.figures.overview(period)
        else { throw Problem.noPeriod }
        let presenter = OverviewPresenter(figures: figures, firstSteps: firstSteps)
        var frame = reception.frame("Overview", visitor)
        frame.isOverview = true
        let status: HTTPResponse.Status = presenter.isIncomplete ? .serviceUnavailable : .ok
        return PageAnswer.page(pages.render(.overview, presenter.page(frame)), status, cookie: visitor.newCookie)
    }

    @Sendable
    private func find(_ request: Request, _ context: HTTPContext) throws -> Response {
        let visitor = try admit(request, context)
        let typed = request.query["user"] ?? ""
        let trimmed = ActionForm.trimmed(typed)
        if let user = UserID(trimmed) {
            return PageAnswer.redirect(to: "/dashboard/users/\(user)", cookie: visitor.newCookie)
        }
        return findPage(trimmed, visitor, trimmed.isEmpty ? .ok : .badRequest)
    }

    /// - Parameter typed: what is no user's id; empty where nothing was typed yet.
    private func findPage(_ typed: String, _ visitor: Visitor, _ status: HTTPResponse.Status) -> Response {
        var frame = reception.frame("Find a user", visitor)
        frame.isUsers = true
        let page = FindPage(
            frame: frame,
            typed: ActionForm.cut(typed, to: 64),
            mistake: typed.isEmpty ? nil : FindPage.noUser
        )
        return PageAnswer.page(pages.render(.find, page), status, cookie: visitor.newCookie)
    }

    @Sendable
    private func user(_ request: Request, _ context: HTTPContext) async throws -> Response {
        let visitor = try admit(request, context)
        guard let user = context.parameters.get("user").flatMap({ UserID($0) }) else {
            return findPage(context.parameters.get("user") ?? "", visitor, .notFound)
        }
        let notice = request.query["result"]
            .flatMap { ActionResult($0, user: user, visitor: visitor, seals: reception.seals) }
            .map(\.notice)
        return await actions.userPage(user, visitor, notices: [notice].compactMap(\.self))
    }

    @Sendable
    private func live(_ request: Request, _ context: HTTPContext) throws -> Response {
        guard reception.visitor(request, context).mayLook else {
            throw Problem(ReplyError.authenticationRequired)
        }
        let (reception, parts, figures) = (reception, parts, figures)
        @Sendable func ending() -> String? {
            if parts.draining.isSet { return "This instance is shutting down; reload the page in a while." }
            var context = context
            // Of a token that came with the request, what it may do now.
            if let identity = context.identity {
                let now = parts.access.policy.identity(ofToken: identity.tokenID)
                context.permissions = now?.permissions ?? .anonymous
            } else {
                context.permissions = parts.access.policy.permissionsWithoutToken
            }
            return reception.visitor(request, context).mayLook ? nil : "You are signed out. Reload the page to sign in."
        }
        return try liveStream.response(figures: { figures.live }, ending: ending)
    }

    // MARK: Who may

    /// - Throws: a page to sign in, or one that says what is missing.
    private func admit(_ request: Request, _ context: HTTPContext) throws -> Visitor {
        let visitor = reception.visitor(request, context)
        if visitor.mayLook { return visitor }
        guard visitor.identity == nil else {
            throw Problem(
                ReplyError(
                    code: .forbidden,
                    text: "the token has no scope for the dashboard; it needs dashboard or operator"
                )
            )
        }
        let destination = request.method == .get ? Destination.checked(request.uri.description) : Destination.overview
        throw PageAnswer(response: signIn.lead(to: destination, visitor))
    }

    private static func user(_ context: HTTPContext) throws(Problem) -> UserID {
        guard let user = context.parameters.get("user").flatMap({ UserID($0) }) else {
            throw Problem(.notFound, code: "NOTFOUND", FindPage.noUser)
        }
        return user
    }

    /// A port of 0 is another one by now, and nc speaks no TLS.
    private var firstSteps: FirstSteps {
        let listen = parts.configuration.listen
        guard listen.port != 0, parts.tls == nil else { return FirstSteps(command: nil) }
        let host = ["0.0.0.0", "::", "[::]"].contains(listen.host) ? "127.0.0.1" : listen.host
        let token = parts.access.isRequired ? "AUTH TOKEN\\n" : ""
        let request = "CONSUME 7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11\\n"
        return FirstSteps(command: "printf '\(token)\(request)' | nc -N \(host) \(listen.port)")
    }

    // MARK: What is the same for everybody

    private static func answer(_ asset: Asset, _ request: Request) -> Response {
        var headers: HTTPFields = [.eTag: asset.entityTag, .cacheControl: "no-cache"]
        if let known = request.headers[.ifNoneMatch], known == "*" || known.contains(asset.entityTag) {
            return Response(status: .notModified, headers: headers)
        }
        headers[.contentType] = asset.mediaType
        return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: asset.text)))
    }

    @Sendable
    private func problemPage(_ problem: Problem, _ request: Request, _ context: HTTPContext) -> Response {
        let visitor = reception.visitor(request, context)
        var frame = reception.frame(problem.heading, visitor)
        // Under another site's name every link would be refused.
        frame.hasNavigation = visitor.mayLook && problem.status != .misdirectedRequest
        let page = ProblemPage(
            frame: frame,
            heading: problem.heading,
            text: problem.detail.sentence,
            advice: problem.advice,
            link: "/dashboard",
            linkText: "Go to the overview"
        )
        var response = PageAnswer.page(pages.render(.problem, page), problem.status, cookie: visitor.newCookie)
        for field in problem.headers { response.headers[field.name] = field.value }
        return response
    }
}
