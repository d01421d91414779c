import Engine
import Usage

/// The result of an operator's action, passed in the URL of the page that shows it and signed against forged links.
struct ActionResult: Equatable, Sendable {
    enum Outcome: String, Sendable {
        case done, repeated, unavailable, overloaded, unknown
        /// The user is missing from the table that `message_usage` references.
        case notFound = "not-found"
        /// The form's idempotency key was used for another number of messages.
        case conflict
        /// The database rejected a value: for a grant, its number of messages.
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
                case .badArgument: .refused
                // Only holds expire, and no action makes a hold.
                case .expired, .internal: .failed
                }
        }
    }

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
        let isGrant = action == "grant"
        let newLimit = limit > 0 ? " The limit of this period is now \(NumberText.grouped(limit))." : ""
        if let caveat, outcome == .done {
            let title = isGrant ? "Granted, but the user \(caveat.ending)" : "Reset, but the user \(caveat.ending)"
            return Notice(.warning, title, caveat.text + newLimit, isOutcome: true)
        }
        return switch outcome {
        case .done where isGrant:
            Notice(.good, "Granted.", "It takes effect with the next message.\(newLimit)", isOutcome: true)
        case .done: Notice(.good, "Reset.", "The count of this period was set to 0.", isOutcome: true)
        case .repeated:
            Notice(.good, "Already granted.", "The form was sent twice; it counts once.\(newLimit)", isOutcome: true)
        case .unknown:
            Notice(
                .warning,
                "The outcome is unknown.",
                "The database did not answer in time. Check the changes below before you try again.",
                isOutcome: true
            )
        case .unavailable, .overloaded, .notFound, .conflict, .refused, .failed:
            Notice(.bad, "Nothing was changed.", reason(isGrant: isGrant), isOutcome: true)
        }
    }

    /// Why nothing was changed, and what to do.
    private func reason(isGrant: Bool) -> String {
        switch outcome {
        case .unavailable:
            "The database could not be reached in time, or another session holds the user’s usage locked; try later."
        case .overloaded: "Too many requests are waiting; try again in a moment."
        case .notFound:
            "The user is not in the application’s table that message_usage references; add the user there first."
        case .conflict where isGrant:
            "This form granted another number of messages before. Check the changes below, then fill in a new form."
        case .refused where isGrant: "The limit would be more than 2,147,483,647; grant fewer messages."
        case .done, .repeated, .unknown, .conflict, .refused, .failed:
            "The database refused the change; the service’s log has the reason."
        }
    }
}
