import Engine
import Usage

/// The result of an operator's action, passed in the URL of the page that shows it and signed against forged links.
struct ActionResult: Equatable, Sendable {
    enum Outcome: String, Sendable {
        case done, repeated, unavailable, overloaded, unknown
        /// The user is missing from the table that `message_usage` references, or there is no such plan.
        case notFound = "not-found"
        /// The form's idempotency key was used for another number of messages.
        case conflict
        /// The database rejected a value: for a grant, its number of messages; for a plan, its state.
        case refused
        case failed

        init(_ error: EngineError) {
            self =
                switch error.code {
                case .unreachable, .unavailable: .unavailable
                case .overloaded: .overloaded
                case .unknown: .unknown
                case .notFound: .notFound
                case .conflict: .conflict
                // Only holds expire, and no action makes a hold.
                case .badArgument, .expired: .refused
                case .internal: .failed
                }
        }
    }

    /// The action, in a result, that was about a model or a member.
    static func ofPart(_ action: String) -> String { "part-\(action)" }

    var action: String
    var outcome: Outcome
    /// The limit after the action; 0 if there is none.
    var limit: Int
    var caveat: ActionCaveat?

    init(action: String, outcome: Outcome, limit: Int, caveat: ActionCaveat? = nil) {
        self.action = action
        self.outcome = outcome
        self.limit = limit
        self.caveat = caveat
    }

    private var text: String { "\(action).\(outcome.rawValue).\(limit).\(caveat?.name ?? "-")" }

    func signed(user: UserID, viewer: Viewer, signer: BrowserSigner) -> String {
        "\(text).\(signer.signature(of: "\(text) \(user)", for: viewer.cookie))"
    }

    /// - Returns: nil unless it was signed for this viewer and this user.
    init?(_ signed: String, user: UserID, viewer: Viewer, signer: BrowserSigner) {
        let parts = signed.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5, let outcome = Outcome(rawValue: parts[1]), let limit = Int(parts[2]) else {
            return nil
        }
        self.init(action: parts[0], outcome: outcome, limit: limit, caveat: ActionCaveat(name: parts[3]))
        guard signer.isValid(parts[4], of: "\(text) \(user)", for: viewer.cookie) else { return nil }
    }

    var notice: Notice {
        let newLimit = limit > 0 ? " The limit of this period is now \(NumberText.grouped(limit))." : ""
        return switch outcome {
        case .done: done(newLimit)
        case .repeated:
            Notice(.good, "Already granted.", "The form was sent twice; it counts once.\(newLimit)", isOutcome: true)
        case .unknown: unknown("The database did not answer in time.")
        // The change may have been made, and only its answer be impossible.
        case .failed: unknown("The service’s log has the reason.")
        case .unavailable, .overloaded, .notFound, .conflict, .refused:
            Notice(.bad, "Nothing was changed.", reason, isOutcome: true)
        }
    }

    private func unknown(_ cause: String) -> Notice {
        let text = "\(cause) Check the changes below before you try again."
        return Notice(.warning, "The outcome is unknown.", text, isOutcome: true)
    }

    private func done(_ newLimit: String) -> Notice {
        switch (action, caveat) {
        case ("plan", nil):
            Notice(.good, "The plan is set.", "It takes effect with the next message.\(newLimit)", isOutcome: true)
        case ("plan", _?):
            Notice(.warning, "The plan is set, and the user has no access.", "The state is below.", isOutcome: true)
        case ("forget", _):
            Notice(
                .good,
                "Forgotten.",
                "All data of this user is deleted. A trial that was started stays spent.",
                isOutcome: true
            )
        case ("window", let caveat?), ("part-window", let caveat?):
            Notice(.warning, "Closed, but the user \(caveat.ending)", caveat.text, isOutcome: true)
        case ("window", nil):
            Notice(.good, "The window is closed.", "The next message opens another one.", isOutcome: true)
        case ("grant", let caveat?):
            Notice(.warning, "Granted, but the user \(caveat.ending)", caveat.text + newLimit, isOutcome: true)
        case (_, let caveat?):
            Notice(.warning, "Reset, but the user \(caveat.ending)", caveat.text + newLimit, isOutcome: true)
        case ("grant", nil):
            Notice(.good, "Granted.", "It takes effect with the next message.\(newLimit)", isOutcome: true)
        case ("part-window", nil):
            Notice(
                .good,
                "The window of this model or member is closed.",
                "Its count of the period stays.",
                isOutcome: true
            )
        case ("part-reset", nil):
            Notice(
                .good,
                "Reset.",
                "The count of this model or member was set to 0, and its window is closed.",
                isOutcome: true
            )
        case (_, nil): Notice(.good, "Reset.", "The count of this period was set to 0.", isOutcome: true)
        }
    }

    /// Why nothing was changed, and what to do.
    private var reason: String {
        switch (outcome, action) {
        case (.unavailable, _):
            "The database could not be reached in time, or another session holds the user’s usage locked; try later."
        case (.overloaded, _): "Too many requests are waiting; try again in a moment."
        case (.notFound, "plan"):
            "There is no such plan any more, or the user is not in the application’s table that message_usage "
                + "references; add the user there first."
        case (.notFound, "part-reset"), (.notFound, "part-window"):
            "The user’s plan does not limit this model or member any more."
        case (.notFound, _):
            "The user is not in the application’s table that message_usage references; add the user there first."
        case (.conflict, "grant"):
            "This form granted another number of messages before. Check the changes below, then fill in a new form."
        case (.refused, "grant"): "The limit would be more than 2,147,483,647; grant fewer messages."
        case (.refused, "plan"): "The plan cannot have this state."
        case (.done, _), (.repeated, _), (.unknown, _), (.conflict, _), (.refused, _), (.failed, _):
            "The database refused the change; the service’s log has the reason."
        }
    }
}
