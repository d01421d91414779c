import Engine
import HTTPTypes
import Hummingbird
import LineProtocol
import Usage

/// The operator's actions on a user, grant and reset: asks for confirmation, performs each once, shows the result.
struct UserActionHandler: Sendable {
    let authenticator: ViewerAuthenticator
    let forms: FormDecoder
    let figures: DashboardFigures
    let engine: EngineClient
    let pages: PageLibrary

    /// A user's page, with the forms for a viewer with the scope operator.
    func userPage(
        _ user: UserID,
        _ viewer: Viewer,
        notices: [Notice] = [],
        draft: Draft? = nil
    ) async -> Response {
        let presenter = UserPresenter(figures: await figures.user(user))
        var frame = authenticator.frame("User \(user)", viewer)
        frame.isUsers = true
        let actions = viewer.canChange ? actions(user, frame, presenter, draft) : nil
        let page = presenter.page(frame, notices: notices, actions: actions)
        let status: HTTPResponse.Status =
            presenter.isIncomplete ? .serviceUnavailable : draft == nil ? .ok : .badRequest
        return PageResponse.page(pages.render(.user, page), status, cookie: viewer.newCookie)
    }

    /// Rejected input, to be corrected.
    struct Draft {
        var action: String
        var messages: String?
        var reason: String?
        var error: ActionForm.InvalidField
    }

    private func actions(
        _ user: UserID,
        _ frame: Frame,
        _ presenter: UserPresenter,
        _ draft: Draft?
    ) -> UserPage.Actions {
        func error(_ action: String, _ field: String) -> String? {
            draft?.action == action && draft?.error.field == field ? draft?.error.message : nil
        }
        return UserPage.Actions(
            user: user.description,
            csrfToken: frame.csrfToken,
            period: presenter.currentPeriod.map { TimeText.period($0) },
            grantCaveat: presenter.answer.flatMap { ActionCaveat(.grant(messages: 1), $0.snapshot) }?.notice,
            resetCaveat: presenter.answer.flatMap { ActionCaveat(.reset, $0.snapshot) }?.notice,
            messages: draft?.messages,
            grantReason: draft?.action == "grant" ? draft?.reason : nil,
            resetReason: draft?.action == "reset" ? draft?.reason : nil,
            messagesError: error("grant", "messages"),
            grantReasonError: error("grant", "reason"),
            resetReasonError: error("reset", "reason")
        )
    }

    // MARK: Submitted forms

    func submit(
        _ request: Request,
        _ context: HTTPContext,
        authorized viewer: Viewer,
        user: UserID
    ) async throws -> Response {
        guard let action = context.parameters.get("action"), ["grant", "reset"].contains(action) else {
            throw Problem.notFound
        }
        let fields = try await forms.fields(request, context, viewer)
        guard viewer.canChange else {
            throw Problem(
                ReplyError(code: .forbidden, text: "this needs a token with the scope operator; nothing was done")
            )
        }
        let form: ActionForm
        do throws(ActionForm.InvalidField) {
            form = try ActionForm.read(action: action, messages: fields["messages"], reason: fields["reason"])
        } catch {
            let draft = Draft(
                action: action,
                messages: fields["messages"].map { ActionForm.truncated($0, toScalars: 32) },
                reason: fields["reason"].map { ActionForm.truncated($0, toScalars: ActionForm.reasonBytesMaximum) },
                error: error
            )
            return await userPage(user, viewer, draft: draft)
        }
        guard fields["confirmed"] == "yes", let key = fields["key"], RandomIdentifier.isWellFormed(key) else {
            return await confirmation(form, user, viewer)
        }
        return await perform(form, key: key, user, viewer)
    }

    private func confirmation(_ form: ActionForm, _ user: UserID, _ viewer: Viewer) async -> Response {
        let snapshot = await figures.snapshot(of: user)
        let period = snapshot.map { TimeText.period($0.period) } ?? "the current period"
        let used = snapshot.map { " from \(NumberText.grouped($0.used))" } ?? ""
        let isGrant: Bool
        let question: String
        var messages: String?
        switch form.action {
        case .grant(let count):
            isGrant = true
            messages = String(count)
            question = "Grant \(NumberText.count(count, "message")) for \(period)?"
        case .reset:
            isGrant = false
            question = "Set the count of \(period)\(used) to 0?"
        }
        var frame = authenticator.frame(isGrant ? "Grant messages" : "Reset usage", viewer)
        frame.isUsers = true
        let caveat = snapshot.flatMap { ActionCaveat(form.action, $0) }
        let record = "is recorded in the audit log as done by \(viewer.actor)."
        let page = ConfirmPage(
            frame: frame,
            user: user.description,
            action: form.action.name,
            heading: isGrant ? "Grant messages" : "Reset usage",
            question: question,
            caveat: caveat?.notice,
            consequence: caveat == nil ? "It takes effect with the next message and \(record)" : "It \(record)",
            button: isGrant ? "Yes, grant" : "Yes, reset",
            buttonClass: isGrant ? "primary" : "danger",
            reason: form.reason,
            messages: messages,
            key: RandomIdentifier.make(),
            usage: snapshot?.accessible
        )
        return PageResponse.page(pages.render(.confirm, page), cookie: viewer.newCookie)
    }

    private func perform(_ form: ActionForm, key: String, _ user: UserID, _ viewer: Viewer) async -> Response {
        let operation: EngineOperation =
            switch form.action {
            case .grant(let messages):
                .change(
                    .grant(messages, key: MessageKey(validated: "dashboard:\(key)"), reason: form.reason),
                    by: ChangeAuthor(actor: viewer.actor)
                )
            case .reset:
                .change(.resetUsage(nil), by: ChangeAuthor(actor: viewer.actor, reason: form.reason))
            }
        let result: ActionResult
        switch await engine.perform(operation, for: user) {
        case .answer(let answer):
            result = ActionResult(
                action: form.action.name,
                outcome: answer.isReplay ? .repeated : .done,
                limit: answer.snapshot.limit ?? 0,
                caveat: ActionCaveat(form.action, answer.snapshot)
            )
        case .failure(let error): result = ActionResult(action: form.action.name, outcome: .init(error), limit: 0)
        default: result = ActionResult(action: form.action.name, outcome: .failed, limit: 0)
        }
        let signed = result.signed(user: user, viewer: viewer, signer: authenticator.signer)
        return PageResponse.redirect(to: "/dashboard/users/\(user)?result=\(signed)")
    }
}
