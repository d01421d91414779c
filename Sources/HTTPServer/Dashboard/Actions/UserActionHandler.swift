import Engine
import HTTPTypes
import Hummingbird
import LineProtocol
import Usage

/// The operator's actions on a user: asks for confirmation, performs each once, shows the result.
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
        partSearch: PartSearch? = nil,
        draft: Draft? = nil
    ) async -> Response {
        async let plans = viewer.canChange ? figures.plans() : nil
        var presenter = UserPresenter(
            figures: await figures.user(user),
            vocabulary: figures.words.current.standard,
            mayChange: viewer.canChange,
            partSearch: partSearch
        )
        if let part = presenter.partAlone { presenter.partSnapshot = await figures.snapshot(of: user, in: part) }
        var frame = authenticator.frame("User \(user)", viewer)
        frame.isUsers = true
        let actions = viewer.canChange ? actions(user, frame, presenter, await plans, draft) : nil
        let page = presenter.page(frame, notices: notices, actions: actions)
        let status: HTTPResponse.Status =
            presenter.isIncomplete ? .serviceUnavailable : draft == nil ? .ok : .badRequest
        return PageResponse.page(pages.render(.user, page), status, cookie: viewer.newCookie)
    }

    /// Rejected input, to be corrected.
    struct Draft {
        var action: String
        var fields: [String: String]
        var error: ActionForm.InvalidField

        func value(_ action: String, _ field: String) -> String? {
            self.action == action ? ActionForm.draft(field, fields) : nil
        }

        func error(_ action: String, _ field: String) -> String? {
            self.action == action && error.field == field ? error.message : nil
        }
    }

    private func actions(
        _ user: UserID,
        _ frame: Frame,
        _ presenter: UserPresenter,
        _ plans: [Plan]?,
        _ draft: Draft?
    ) -> UserPage.Actions {
        func reason(_ action: String) -> UserPage.ReasonField {
            UserPage.ReasonField(
                id: "\(action)-reason",
                value: draft?.value(action, "reason"),
                error: draft?.error(action, "reason")
            )
        }
        let snapshot = presenter.answer?.snapshot
        var actions = UserPage.Actions(user: user.description, csrfToken: frame.csrfToken)
        actions.period = snapshot.map { TimeText.period($0.period) }
        actions.grantCaveat = snapshot.flatMap { ActionCaveat(.grant(messages: 1), $0) }?.notice
        actions.resetCaveat = snapshot.flatMap { ActionCaveat(.reset(nil), $0) }?.notice
        actions.messages = draft?.value("grant", "messages")
        actions.messagesError = draft?.error("grant", "messages")
        actions.grantReason = reason("grant")
        actions.resetReason = reason("reset")
        actions.resetChoice = presenter.resetChoice(selected: draft?.value("reset", "part"))
        actions.windowChoice = presenter.windowChoice(selected: draft?.value("window", "part"))
        actions.hasWindow = actions.windowChoice != nil || snapshot?.hasOpenWindow == true
        actions.windowReason = reason("window")
        actions.forgetReason = reason("forget")
        if let plans, !plans.isEmpty {
            actions.plan = UserPage.PlanForm(
                plans: plans,
                selectedPlan: draft?.value("plan", "plan") ?? snapshot?.plan.name,
                selectedState: draft?.value("plan", "state"),
                expires: draft?.value("plan", "expires"),
                planError: draft?.error("plan", "plan"),
                stateError: draft?.error("plan", "state"),
                expiresError: draft?.error("plan", "expires"),
                planReason: reason("plan")
            )
        }
        return actions
    }

    // MARK: Submitted forms

    func submit(
        _ request: Request,
        _ context: HTTPContext,
        authorized viewer: Viewer,
        user: UserID
    ) async throws -> Response {
        guard let action = context.parameters.get("action"), ActionForm.actionNames.contains(action) else {
            throw Problem.notFound
        }
        let fields = try await forms.fields(request, context, viewer)
        try viewer.requireOperator()
        let plans = action == "plan" ? await figures.plans() : nil
        let form: ActionForm
        do throws(ActionForm.InvalidField) {
            form = try ActionForm.read(action: action, fields, plans: plans)
        } catch {
            let part = fields["part"].flatMap(MessageParts.init(formValue:))?.all.first
            return await userPage(
                user,
                viewer,
                partSearch: PartSearch(part?.name, in: nil),
                draft: Draft(action: action, fields: fields, error: error)
            )
        }
        guard fields["confirmed"] == "yes", let key = fields["key"], RandomIdentifier.isWellFormed(key) else {
            return await confirmation(form, user, viewer, plans)
        }
        guard form.action != .forget || ActionConfirmation.isForgetWord(fields["word"]) else {
            return await confirmation(form, user, viewer, plans, typedError: true)
        }
        return await perform(form, key: key, user, viewer)
    }

    private func confirmation(
        _ form: ActionForm,
        _ user: UserID,
        _ viewer: Viewer,
        _ plans: [Plan]?,
        typedError: Bool = false
    ) async -> Response {
        var planLabel: String?
        if case .setPlan(let fields) = form.action { planLabel = plans?.first { $0.name == fields.plan }?.label }
        let confirmation = ActionConfirmation(
            form: form,
            user: user,
            snapshot: await figures.snapshot(of: user, in: form.parts),
            actor: viewer.actor,
            planLabel: planLabel,
            vocabulary: figures.words.current.standard
        )
        var frame = authenticator.frame(confirmation.heading, viewer)
        frame.isUsers = true
        let page = confirmation.page(frame, key: RandomIdentifier.make(), typedError: typedError)
        return PageResponse.page(
            pages.render(.confirm, page),
            typedError ? .badRequest : .ok,
            cookie: viewer.newCookie
        )
    }

    private func perform(_ form: ActionForm, key: String, _ user: UserID, _ viewer: Viewer) async -> Response {
        let author = ChangeAuthor(actor: viewer.actor, reason: form.reason)
        let operation: EngineOperation =
            switch form.action {
            case .grant(let messages):
                .change(
                    .grant(Grant(messages, key: MessageKey(validated: "dashboard:\(key)"), reason: form.reason)),
                    by: ChangeAuthor(actor: viewer.actor)
                )
            case .reset(let parts): .change(.resetUsage(nil, parts: parts), by: author)
            case .resetWindow(let parts): .change(.closeWindow(parts: parts), by: author)
            case .setPlan(let fields): .change(.setPlan(fields.change(of: user)), by: author)
            case .forget: .change(.forget, by: author)
            }
        let name = form.parts == nil ? form.action.name : ActionResult.ofPart(form.action.name)
        let result: ActionResult
        switch await engine.perform(operation, for: user) {
        case .answer(let answer):
            result = ActionResult(
                action: name,
                outcome: answer.isRepeated ? .repeated : .done,
                limit: answer.snapshot.limit ?? 0,
                caveat: ActionCaveat(form.action, answer.snapshot)
            )
        case .done: result = ActionResult(action: name, outcome: .done, limit: 0)
        case .failure(let error): result = ActionResult(action: name, outcome: .init(error), limit: 0)
        default: result = ActionResult(action: name, outcome: .failed, limit: 0)
        }
        let signed = result.signed(user: user, viewer: viewer, signer: authenticator.signer)
        return PageResponse.redirect(to: "/dashboard/users/\(user)?result=\(signed)")
    }
}
