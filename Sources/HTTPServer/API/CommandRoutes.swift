import Engine
import HTTPTypes
import Hummingbird
import LineProtocol
import NIOCore
import ServiceCore
import Usage

/// Commands of the line protocol over HTTP, with the same permissions, answers and errors: see `CommandRoute.all`.
struct CommandRoutes: RouteProvider {
    private let engine: EngineClient
    private let words: CurrentWords
    private let requestGuard: RequestGuard
    private let bodies: BodyDecoder
    private let metrics: SharedMetrics
    private let allowsWhenUnavailable: Bool
    private let namespace: UserNamespace?

    init(_ dependencies: HTTPServerDependencies) {
        engine = dependencies.engine
        words = dependencies.service.engine.words
        requestGuard = dependencies.requestGuard
        bodies = BodyDecoder(dependencies.configuration)
        metrics = dependencies.service.metrics.http
        allowsWhenUnavailable = dependencies.service.configuration.settings.counting.allowsWhenUnavailable
        namespace = dependencies.service.configuration.settings.counting.userNamespace
    }

    func add(to router: Router<HTTPContext>) {
        let counted = router.group().add(middleware: ErrorCountingMiddleware(metrics: metrics))
        let group = requestGuard.group("v1", of: counted)
        for route in CommandRoute.all {
            group.on(route.path, method: route.method) { request, context in
                try await execute(route, request, context)
            }
        }
    }

    private func execute(_ route: CommandRoute, _ request: Request, _ context: HTTPContext) async throws -> Response {
        try context.require(route.verb)
        _ = try QueryParameters(request)
        let command = try route.command(
            user: try context.user(in: namespace),
            key: try route.key(of: request.headers),
            body: try await bodies.read(request, context),
            context.permissions,
            namespace
        )
        guard case .operation(let user, let operation, let fallback)? = EngineCall(command, by: context.identity) else {
            preconditionFailure("every route has a command of the engine")
        }
        let submittedAt = NIODeadline.now()
        let outcome = await engine.perform(operation, for: user)
        metrics.count(command, outcome, submittedAt: submittedAt)
        let vocabulary = words.current.vocabulary(for: request, named: command.sentences)
        return try response(to: outcome, fallback, vocabulary)
    }

    private func response(
        to outcome: Outcome,
        _ fallback: FallbackReply,
        _ vocabulary: Vocabulary
    ) throws(Problem) -> Response {
        switch outcome {
        case .answer(let answer):
            var response = CommandRoutes.response(answer.json(in: vocabulary))
            vocabulary.writeFields(to: &response)
            RateLimitFields(answer.snapshot).write(to: &response.headers)
            if let seconds = answer.retryAfterSeconds { response.headers[.retryAfter] = "\(max(1, seconds))" }
            return response
        case .done: return CommandRoutes.response(ByteBuffer(string: "{}"))
        case .failure(let error):
            switch fallback.answer(to: error, allowsWhenUnavailable: allowsWhenUnavailable, in: vocabulary) {
            case .success(let answer):
                metrics.count(ReplyError(error).code)
                var response = CommandRoutes.response(ByteBuffer(json: UncountedBody(answer)))
                vocabulary.writeFields(to: &response)
                return response
            case .failure(let reply):
                throw fallback == .other ? Problem(reply) : Problem(reply, for: error, in: vocabulary)
            }
        case .periodUsages, .allowances, .report, .subscribed, .periods: throw Problem(EngineError.unexpectedOutcome)
        }
    }

    private static func response(_ json: ByteBuffer) -> Response {
        Response(
            status: .ok,
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: json)
        )
    }
}

/// Counts the errors of commands over HTTP, those of tokens and bodies too.
struct ErrorCountingMiddleware: RouterMiddleware {
    typealias Context = HTTPContext

    let metrics: SharedMetrics

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let problem as Problem {
            // Some are of HTTP alone, such as a body that breaks off. Those are in `headroom_http_requests_total`.
            ReplyError.Code(rawValue: problem.code).map(metrics.count)
            throw problem
        }
    }
}
