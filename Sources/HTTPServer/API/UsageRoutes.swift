import Engine
import HTTPTypes
import Hummingbird
import LineProtocol
import ServiceCore
import Usage

/// Usage as JSON, with the content and the permissions of `USAGE`, `HISTORY` and `REPORT`. docs/openapi.json describes
/// it.
struct UsageRoutes: RouteProvider {
    private let engine: EngineClient
    private let words: CurrentWords
    private let requestGuard: RequestGuard
    private let requestTimeout: Duration
    private let namespace: UserNamespace?

    init(_ dependencies: HTTPServerDependencies) {
        engine = dependencies.engine
        words = dependencies.service.engine.words
        requestGuard = dependencies.requestGuard
        requestTimeout = dependencies.configuration.settings.requestTimeout
        namespace = dependencies.service.configuration.settings.counting.userNamespace
    }

    func add(to router: Router<HTTPContext>) {
        router.get("v1/openapi.json", use: document)
        requestGuard.group("v1", of: router)
            .get("usage/{user}", use: usage)
            .get("usage/{user}/allowances", use: allowances)
            .get("history/{user}", use: history)
            .get("report", use: report)
            .get("report/{period}", use: report)
    }

    @Sendable
    private func usage(_ request: Request, _ context: HTTPContext) async throws -> Response {
        try context.require(.usage)
        let user = try context.user(in: namespace)
        let parameters = try QueryParameters(request, allowing: "period", "model", "member", "lang", "tz")
        let sentences = try parameters.sentences()
        let command = Command.usage(user: user, period: try parameters.period())
            .inParts(try parameters.parts(in: namespace))
        guard case .operation(_, let operation, _)? = EngineCall(command, by: context.identity) else {
            preconditionFailure("USAGE is an operation of the engine")
        }
        let outcome = await engine.perform(operation, for: user)
        let vocabulary = words.current.vocabulary(for: request, named: sentences)
        if case .failure(let error) = outcome {
            throw Problem(ReplyError(reading: error, in: vocabulary), for: error, in: vocabulary)
        }
        guard case .answer(let answer) = outcome else { throw Problem(outcome) }
        var response = TaggedBody(json: answer.json(in: vocabulary), in: vocabulary.language).response(to: request)
        vocabulary.writeFields(to: &response)
        RateLimitFields(answer.snapshot).write(to: &response.headers)
        return response
    }

    @Sendable
    private func allowances(_ request: Request, _ context: HTTPContext) async throws -> Response {
        try context.require(.allowances)
        let user = try context.user(in: namespace)
        let period = try QueryParameters(request, allowing: "period").period()
        let outcome = await engine.perform(.unbatched(.allowances(period)), for: user)
        guard case .allowances(let period, let allowances) = outcome else { throw Problem(outcome) }
        return TaggedBody(json: allowances.json(of: user, in: period)).response(to: request)
    }

    @Sendable
    private func history(_ request: Request, _ context: HTTPContext) async throws -> Response {
        try context.require(.history)
        let user = try context.user(in: namespace)
        let months = try QueryParameters(request, allowing: "months").number(
            "months",
            in: CommandParser.monthsRange,
            default: 12
        )
        let outcome = await engine.perform(.history(months), for: user)
        guard case .periodUsages(let periods) = outcome else { throw Problem(outcome) }
        return TaggedBody(json: ByteBuffer(json: HistoryBody(user, periods))).response(to: request)
    }

    @Sendable
    private func report(_ request: Request, _ context: HTTPContext) async throws -> Response {
        try context.require(.report)
        _ = try QueryParameters(request)
        let outcome = await engine.report(.report(try period(context)), within: requestTimeout)
        guard case .report(let report) = outcome else { throw Problem(outcome) }
        return TaggedBody(json: ByteBuffer(json: ReportBody(report))).response(to: request)
    }

    /// All open periods if the path has no period.
    private func period(_ context: HTTPContext) throws(Problem) -> BillingPeriod {
        guard context.parameters.get("period") != nil else { return .open }
        return try QueryParameters.period(context.pathParameter("period") ?? "")
    }

    /// Public: needs no token.
    @Sendable
    private func document(_ request: Request, _ context: HTTPContext) async throws -> Response {
        _ = try QueryParameters(request)
        let body = namespace == nil ? OpenAPIDocument.body : OpenAPIDocument.bodyWithNames
        return body.response(to: request)
    }
}

extension Problem {
    /// Makes the error for an outcome of an unexpected kind.
    fileprivate init(_ outcome: Outcome) {
        if case .failure(let error) = outcome { self.init(error) } else { self.init(EngineError.unexpectedOutcome) }
    }
}
