import Usage

/// The page that asks for confirmation of an action, with what it will do.
struct ActionConfirmation {
    let form: ActionForm
    let user: UserID
    /// The user's present usage; nil if it cannot be read.
    let snapshot: UsageSnapshot?
    let actor: String
    /// The label of the plan to be set; nil if it cannot be read.
    let planLabel: String?
    /// Of the sentence about the user's usage.
    var vocabulary = Words.shipped.standard

    /// To be typed before a user is forgotten, because that cannot be undone.
    static let forgetWord = "forget"

    static func isForgetWord(_ text: String?) -> Bool {
        ActionForm.trimmed(text ?? "").lowercased() == forgetWord
    }

    /// - Parameter typedError: the word that confirms the action was not typed.
    func page(_ frame: Frame, key: String, typedError: Bool = false) -> ConfirmPage {
        ConfirmPage(
            frame: frame,
            user: user.description,
            action: form.action.name,
            heading: heading,
            question: question,
            caveat: caveat,
            effects: effects,
            hasEffects: !effects.isEmpty,
            consequence: consequence,
            button: button,
            buttonClass: buttonClass,
            reason: form.reason,
            fields: fields,
            key: key,
            usage: snapshot?.accessible.text(in: vocabulary),
            typed: form.action == .forget
                ? ConfirmPage.TypedWord(
                    word: ActionConfirmation.forgetWord,
                    error: typedError ? "Type the word \(ActionConfirmation.forgetWord) to confirm." : nil
                ) : nil
        )
    }

    var heading: String {
        switch form.action {
        case .grant: "Grant messages"
        case .reset: "Reset usage"
        case .resetWindow: "Close the window"
        case .setPlan: "Set the plan"
        case .forget: "Forget the user"
        }
    }

    /// The model or the member that the action is about.
    private var part: PartUsage? { form.parts == nil ? nil : snapshot?.parts.first }
    private var partName: String? { part.map { "the \($0.part.kind.rawValue) \($0.label.isolated)" } }

    private var question: String {
        let period = snapshot.map { TimeText.period($0.period) } ?? "the current period"
        switch form.action {
        case .grant(let messages): return "Grant \(NumberText.count(messages, "message")) for \(period)?"
        case .reset:
            let of = partName.map { "\($0) in " } ?? ""
            let used = snapshot.map { " from \(NumberText.grouped(part?.counter.used ?? $0.used))" } ?? ""
            return "Set the count of \(of)\(period)\(used) to 0?"
        case .resetWindow:
            let of = partName.map { " of \($0)" } ?? ""
            let messages = part.map(\.counter.windowUsed) ?? snapshot?.closableWindow?.used
            let used = messages.map { ", with \(NumberText.count($0, "message"))," } ?? ""
            return "Close the window\(of)\(used) that is open now?"
        case .setPlan(let fields):
            let label = planLabel.map { "\($0.isolated) (\(fields.plan))" } ?? fields.plan
            let state = fields.state.map { ", state \($0.rawValue.spaced)" } ?? ""
            let end = fields.expiresAt.map { ", until \(TimeText($0).text)" } ?? ""
            return "Set the plan to \(label)\(state)\(end)?"
        case .forget: return "Delete all data of this user?"
        }
    }

    private var caveat: Notice? {
        switch form.action {
        case .grant, .reset, .resetWindow: return snapshot.flatMap { ActionCaveat(form.action, $0) }?.notice
        case .forget: return Notice(.bad, "This cannot be undone.", "Nobody can read or restore the data afterwards.")
        case .setPlan(let fields):
            let hasEnded = [.expired, .revoked, .billingRetry].contains(fields.state)
            let isPast = snapshot.flatMap { now in fields.expiresAt.map { $0 <= now.observedAt } } ?? false
            guard hasEnded || isPast else { return nil }
            return Notice(
                .warning,
                "The user will have no access.",
                hasEnded ? "The state gives none." : "The end is in the past."
            )
        }
    }

    private var effects: [String] {
        switch form.action {
        case .grant, .reset(nil): []
        case .reset:
            [
                "Closed: its window, if one is open.",
                "Kept: the user’s own count, and those of other models and members.",
            ]
        case .resetWindow: ["Kept: the count of the current period. The next message opens another window."]
        case .setPlan:
            [
                "Replaced: all subscriptions of the user, also those of stores. A store goes on charging, and its next "
                    + "event changes the plan again.",
                "Kept: the count of the current period, the day on which it begins, and the start of a trial.",
            ]
        case .forget:
            [
                "Deleted: usage of all billing periods, message keys and held messages, grants, subscriptions, the user’s "
                    + "changes in the audit log, and the contents of store events.",
                "Kept under a keyed hash in place of the id: a trial that was started. It stays spent if the user "
                    + "returns.",
                "Kept: the ids and dates of store events, so that a repeated one is not applied, and that a user was "
                    + "forgotten, with your token’s name and the reason, which should not name the user.",
                "Not ended: a subscription at a store. Cancel it there, or its next event records the user again.",
            ]
        }
    }

    private var consequence: String {
        let record = "is recorded in the audit log as done by \(actor)."
        return switch form.action {
        case .grant, .reset, .resetWindow, .setPlan:
            caveat == nil ? "It takes effect with the next message and \(record)" : "It \(record)"
        case .forget: "It \(record)"
        }
    }

    private var button: String {
        switch form.action {
        case .grant: "Yes, grant"
        case .reset: "Yes, reset"
        case .resetWindow: "Yes, close the window"
        case .setPlan: "Yes, set the plan"
        case .forget: "Yes, delete all data"
        }
    }

    /// A class of the stylesheet.
    private var buttonClass: String {
        switch form.action {
        case .grant, .resetWindow, .setPlan: "primary"
        case .reset, .forget: "danger"
        }
    }

    private var fields: [ConfirmPage.Field] {
        switch form.action {
        case .grant(let messages): [ConfirmPage.Field(name: "messages", value: String(messages))]
        case .setPlan(let fields): fields.fields.map { ConfirmPage.Field(name: $0.name, value: $0.value) }
        case .reset(let parts), .resetWindow(let parts):
            parts.map { [ConfirmPage.Field(name: "part", value: $0.formValue)] } ?? []
        case .forget: []
        }
    }
}

extension UsageSnapshot {
    /// The window that an operator can close; nil if the plan has none. It may not be open.
    var closableWindow: ShownAllowance? { otherAllowancesShown.first { $0.name == .window } }
    var hasOpenWindow: Bool { closableWindow?.resetsAt != nil }
}
