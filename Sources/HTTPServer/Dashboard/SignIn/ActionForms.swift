import Engine
import HTTPTypes
import Hummingbird
import LineProtocol
import Usage

/// The operator's actions on a user, grant and reset: asks for confirmation, performs each once, shows the result.
struct ActionForms: Sendable {
    let reception: Reception
    let forms: FormReading
    let figures: DashboardFigures
    let store: StoreGateway
    let pages: PageLibrary

    /// A user's page, with the forms if the visitor has the scope operator.
    ///
    /// - Parameter draft: rejected input, to be corrected.
    func userPage(
        _ user: UserID,
        _ visitor: Visitor,
        notices: [Notice] = [],
        draft: Draft? = nil
    ) async -> Response {
        let presenter = UserPresenter(figures: await figures.user(user))
        var frame = reception.frame("User \(user)", visitor)
        frame.isUsers = true
        let actions = visitor.mayChange ? form(user, frame, presenter, draft) : nil
        let page = presenter.page(frame, notices: notices, actions: actions)
        let status: HTTPResponse.Status =
            presenter.isIncomplete ? .serviceUnavailable : draft == nil ? .ok : .badRequest
        return PageAnswer.page(pages.render(.user, page), status, cookie: visitor.newCookie)
    }

    struct Draft {
        var action: String
        var messages: String?
        var reason: String?
        var mistake: ActionForm.Mistake
    }

    private func form(_ user: UserID, _ frame: Frame, _ presenter: UserPresenter, _ draft: Draft?) -> UserPage.Actions {
        func mistake(_ action: String, _ field: String) -> String? {
            draft?.action == action && draft?.mistake.field == field ? draft?.mistake.message : nil
        }
        return UserPage.Actions(
            user: user.description,
            formSeal: frame.formSeal,
            period: presenter.currentPeriod.map { TimeText.period($0) },
            grantCaveat: presenter.answer.flatMap { ActionCaveat(.grant(messages: 1), $0.snapshot) }?.notice,
            resetCaveat: presenter.answer.flatMap { ActionCaveat(.reset, $0.snapshot) }?.notice,
            messages: draft?.messages,
            grantReason: draft?.action == "grant" ? draft?.reason : nil,
            resetReason: draft?.action == "reset" ? draft?.reason : nil,
            messagesMistake: mistake("grant", "messages"),
            grantReasonMistake: mistake("grant", "reason"),
            resetReasonMistake: mistake("reset", "reason")
        )
    }

    // MARK: What is sent

    func take(
        _ request: Request,
        _ context: HTTPContext,
        admitted visitor: Visitor,
        user: UserID
    ) async throws -> Response {
        guard let action = context.parameters.get("action"), ["grant", "reset"].contains(action) else {
            throw Problem.notFound
        }
        let fields = try await forms.fields(request, context, visitor)
        guard visitor.mayChange else {
            throw Problem(
                ReplyError(code: .forbidden, text: "this needs a token with the scope operator; nothing was done")
            )
        }
        let form: ActionForm
        do throws(ActionForm.Mistake) {
            form = try ActionForm.read(action: action, messages: fields["messages"], reason: fields["reason"])
        } catch {
            let draft = Draft(
                action: action,
                messages: fields["messages"].map { ActionForm.cut($0, to: 32) },
                reason: fields["reason"].map { ActionForm.cut($0, to: ActionForm.reasonBytesMaximum) },
                mistake: error
            )
            return await userPage(user, visitor, draft: draft)
        }
        guard fields["confirmed"] == "yes", let key = fields["key"], RandomName.isOne(key) else {
            return await confirmation(form, user, visitor)
        }
        return await perform(form, key: key, user, visitor)
    }

    private func confirmation(_ form: ActionForm, _ user: UserID, _ visitor: Visitor) async -> Response {
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
        var frame = reception.frame(isGrant ? "Grant messages" : "Reset usage", visitor)
        frame.isUsers = true
        let caveat = snapshot.flatMap { ActionCaveat(form.action, $0) }
        let record = "goes on record as done by \(visitor.actor)."
        let page = ConfirmPage(
            frame: frame,
            user: user.description,
            action: form.action.name,
            heading: isGrant ? "Grant messages" : "Reset usage",
            question: question,
            caveat: caveat?.notice,
            consequence: caveat == nil ? "It counts from the next message on, and \(record)" : "It \(record)",
            button: isGrant ? "Yes, grant" : "Yes, reset",
            buttonLook: isGrant ? "primary" : "danger",
            reason: form.reason,
            messages: messages,
            key: RandomName.make(),
            snapshot: snapshot?.accessible
        )
        return PageAnswer.page(pages.render(.confirm, page), cookie: visitor.newCookie)
    }

    private func perform(_ form: ActionForm, key: String, _ user: UserID, _ visitor: Visitor) async -> Response {
        let change: EngineOperation
        switch form.action {
        case .grant(let messages):
            let messageKey = MessageKey(validated: "dashboard:\(key)")
            change = .attributed(.grant(messages, key: messageKey, reason: form.reason), actor: visitor.actor)
        case .reset:
            change = .attributed(.resetUsage(nil), actor: visitor.actor, reason: form.reason)
        }
        let result: ActionResult
        switch await store.ask(change, of: user) {
        case .answer(let answer):
            result = ActionResult(
                action: form.action.name,
                outcome: answer.isReplay ? .repeated : .done,
                number: answer.snapshot.limit ?? 0,
                caveat: ActionCaveat(form.action, answer.snapshot)
            )
        case .failure(let error): result = ActionResult(action: form.action.name, outcome: .init(error), number: 0)
        default: result = ActionResult(action: form.action.name, outcome: .failed, number: 0)
        }
        let sealed = result.sealed(user: user, visitor: visitor, seals: reception.seals)
        return PageAnswer.redirect(to: "/dashboard/users/\(user)?result=\(sealed)")
    }
}
