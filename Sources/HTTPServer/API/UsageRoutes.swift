import Engine
import Foundation
import HTTPTypes
import HeadroomServer
import Hummingbird
import LineProtocol
import Usage

/// Where users stand, as JSON: what `USAGE`, `HISTORY` and `REPORT` tell, to whom they tell it. docs/openapi.json describes it.
struct UsageRoutes: RouteCollecting {
    private let store: StoreGateway
    private let access: AccessControl
    private let openPort: OpenPort
    private let requestTimeout: Duration

    init(_ store: StoreGateway, access: AccessControl, openPort: OpenPort, requestTimeout: Duration) {
        self.store = store
        self.access = access
        self.openPort = openPort
        self.requestTimeout = requestTimeout
    }

    func add(to router: Router<HTTPContext>) {
        router.get("v1/openapi.json", use: document)
        router.group("v1").add(middleware: Authenticating(access: access)).add(middleware: openPort)
            .get("usage/{user}", use: usage)
            .get("history/{user}", use: history)
            .get("report", use: report)
            .get("report/{period}", use: report)
    }

    @Sendable
    private func usage(_ request: Request, _ context: HTTPContext) async throws -> Response {
        try context.require(.usage)
        let user = try context.user()
        let period = try Query(request, takes: "period").period()
        let outcome = await store.ask(period.map { .usageInPeriod($0) } ?? .usage, of: user)
        if case .failure(let error) = outcome { throw Problem(ReplyError(reading: error)) }
        guard case .answer(let answer) = outcome else { throw Problem(outcome) }
        var response = try JSONAnswer(UsageBody(answer)).response(to: request)
        RateLimitFields(answer.snapshot).write(to: &response.headers)
        return response
    }

    @Sendable
    private func history(_ request: Request, _ context: HTTPContext) async throws -> Response {
        try context.require(.history)
        let user = try context.user()
        let months = try Query(request, takes: "months").number("months", in: CommandParser.monthsRange, default: 12)
        let outcome = await store.ask(.history(months), of: user)
        guard case .history(let periods) = outcome else { throw Problem(outcome) }
        return try JSONAnswer(HistoryBody(user, periods)).response(to: request)
    }

    @Sendable
    private func report(_ request: Request, _ context: HTTPContext) async throws -> Response {
        try context.require(.report)
        _ = try Query(request)
        let outcome = await store.read(.report(try period(context)), within: requestTimeout)
        guard case .report(let report) = outcome else { throw Problem(outcome) }
        return try JSONAnswer(ReportBody(report)).response(to: request)
    }

    /// Every open period where the path has no place for one.
    private func period(_ context: HTTPContext) throws(Problem) -> BillingPeriod {
        guard context.parameters.get("period") != nil else { return .open }
        return try Query.period(context.pathParameter("period") ?? "")
    }

    /// Everybody may know what can be asked.
    @Sendable
    private func document(_ request: Request, _ context: HTTPContext) async throws -> Response {
        _ = try Query(request)
        return OpenAPIDocument.answer.response(to: request)
    }
}

/// What this API is, for programs: docs/openapi.json.
enum OpenAPIDocument {
    static let data = Data(PackageResources.openapi_json)
    /// Made once: everybody may ask, as often as they like.
    static let answer = JSONAnswer(data: data, caching: "no-cache")
}

extension Problem {
    /// An outcome that is no answer to what was asked.
    fileprivate init(_ outcome: Outcome) {
        guard case .failure(let error) = outcome else {
            self.init(ReplyError(code: .internal, text: "the store answered something else; please report it"))
            return
        }
        self.init(error)
    }
}
