import Billing
import Engine
import HTTPTypes
import Hummingbird
import LineProtocol
import Postgres
import StoreEvents

/// The page of a store event, and an operator's replay of it.
struct EventHandler: Sendable {
    let authenticator: ViewerAuthenticator
    let forms: FormDecoder
    let figures: DashboardFigures
    /// For changes, as the store's own events.
    let sessions: SessionPool
    let requestTimeout: Duration
    let pages: PageLibrary

    func show(_ request: Request, authorized viewer: Viewer) async throws -> Response {
        let query = request.query
        let name = try EventHandler.name(query)
        let notice = query["result"]
            .flatMap { ReplayResult($0, name, viewer: viewer, signer: authenticator.signer) }
            .map(\.notice)
        return try await page(name, viewer, notices: [notice].compactMap(\.self))
    }

    func replay(_ request: Request, _ context: HTTPContext, authorized viewer: Viewer) async throws -> Response {
        let fields = try await forms.fields(request, context, viewer)
        try viewer.requireOperator()
        let name = try EventHandler.name(fields)
        let reason: String
        do throws(ActionForm.InvalidField) {
            reason = try ActionForm.reason(fields)
        } catch {
            let field = UserPage.ReasonField(
                id: "replay-reason",
                value: ActionForm.draft("reason", fields),
                error: error.message
            )
            return try await page(name, viewer, draft: field)
        }
        let author = ChangeAuthor(actor: viewer.actor, reason: reason)
        let result: ReplayResult
        do throws(SessionPool.Failure) {
            let deadline = ContinuousClock.now + requestTimeout
            let replayed = try await sessions.perform(by: deadline) { connection throws(PostgresError) in
                try BillingLedger(connection, deadline: deadline, author: author).replay(
                    name,
                    translate: BillingEvent.init(source:payload:)
                )
            }
            // Without such an event, the next page says so.
            result = ReplayResult(outcome: replayed?.outcome ?? "refused")
        } catch {
            result = ReplayResult(error)
        }
        let signed = result.signed(name, viewer: viewer, signer: authenticator.signer)
        return PageResponse.redirect(to: "\(EventPage.path(of: name))&result=\(signed)")
    }

    private static func name(_ fields: [String: String]) throws(Problem) -> BillingEventLog.Name {
        guard let source = fields["source"], let id = fields["id"], !source.isEmpty, !id.isEmpty else {
            throw .unknownEvent
        }
        return BillingEventLog.Name(source: source, id: id)
    }

    /// - Parameter draft: a rejected reason, to be corrected.
    private func page(
        _ name: BillingEventLog.Name,
        _ viewer: Viewer,
        notices: [Notice] = [],
        draft: UserPage.ReasonField? = nil
    ) async throws -> Response {
        let event: BillingEventDetails?
        switch await figures.event(name) {
        case .success(let found): event = found
        case .failure(let error): throw Problem(error)
        }
        guard let event else { throw Problem.unknownEvent }
        var details = [
            UserPage.Detail(name: "Type", text: event.type),
            UserPage.Detail(name: "Source", text: event.name.source),
            UserPage.Detail(name: "Id", text: event.name.id),
            UserPage.Detail(name: "Happened", time: TimeText(event.happenedAt)),
            UserPage.Detail(name: "Received", time: TimeText(event.receivedAt)),
        ]
        if !event.hasPayload {
            details.append(UserPage.Detail(name: "Contents", text: "no longer stored, so it cannot be replayed"))
        }
        let page = EventPage(
            frame: authenticator.frame("Store event", viewer),
            notices: notices,
            details: details,
            user: event.user?.description,
            problem: event.problem,
            outcomeState: EventPage.state(of: event.outcome),
            outcome: event.outcome,
            replay: viewer.canChange && event.hasPayload
                ? EventPage.Replay(
                    source: event.name.source,
                    id: event.name.id,
                    actor: viewer.actor,
                    replayReason: draft ?? UserPage.ReasonField(id: "replay-reason")
                ) : nil
        )
        return PageResponse.page(
            pages.render(.event, page),
            draft == nil ? .ok : .badRequest,
            cookie: viewer.newCookie
        )
    }
}

extension Problem {
    static let unknownEvent = Problem(
        .notFound,
        code: "NOTFOUND",
        "there is no such store event; headroom events list shows all"
    )
}
