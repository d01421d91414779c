import Engine
import Usage

/// The result of an operator's action, passed in the address of the page that shows it. The seal prevents forged links
/// to results.
struct ActionResult: Equatable, Sendable {
    enum Outcome: String, Sendable {
        case done, repeated, unavailable, overloaded, unknown
        /// The user is not in the table that `message_usage` refers to.
        case notFound = "not-found"
        /// The form's key granted another number of messages before.
        case conflict
        /// A value that the database does not take: of a grant, its number of messages.
        case refused
        case failed

        init(_ error: EngineError) {
            self =
                switch error.code {
                case .unavailable: .unavailable
                case .overloaded: .overloaded
                case .unknown: .unknown
                case .notFound: .notFound
                case .conflict: .conflict
                case .badArgument: .refused
                // Only a hold expires, and no action makes one.
                case .expired, .internal: .failed
                }
        }
    }

    var action: String
    var outcome: Outcome
    /// The limit from now on; 0 is none.
    var number: Int
    var caveat: ActionCaveat?

    init(action: String, outcome: Outcome, number: Int, caveat: ActionCaveat? = nil) {
        self.action = action
        self.outcome = outcome
        self.number = number
        self.caveat = caveat
    }

    private var text: String { "\(action).\(outcome.rawValue).\(number).\(caveat?.name ?? "-")" }

    func sealed(user: UserID, visitor: Visitor, seals: FormSeal) -> String {
        "\(text).\(seals.seal("\(text) \(user)", for: visitor.name))"
    }

    /// - Returns: nil for what this visitor was not told about this user.
    init?(_ sealed: String, user: UserID, visitor: Visitor, seals: FormSeal) {
        let parts = sealed.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5, let outcome = Outcome(rawValue: parts[1]), let number = Int(parts[2]) else {
            return nil
        }
        self.init(action: parts[0], outcome: outcome, number: number, caveat: ActionCaveat(name: parts[3]))
        guard seals.isValid(parts[4], "\(text) \(user)", for: visitor.name) else { return nil }
    }

    var notice: Notice {
        let isGrant = action == "grant"
        let limit = number > 0 ? " The limit of this period is \(NumberText.grouped(number)) now." : ""
        if let caveat, outcome == .done {
            let title = isGrant ? "Granted, but the user \(caveat.ending)" : "Reset, but the user \(caveat.ending)"
            return Notice(.warning, title, caveat.text + limit, isOutcome: true)
        }
        return switch outcome {
        case .done where isGrant:
            Notice(.good, "Granted.", "It counts from the next message on.\(limit)", isOutcome: true)
        case .done: Notice(.good, "Reset.", "The count of this period was set to 0.", isOutcome: true)
        case .repeated:
            Notice(.good, "Granted already.", "The form was sent twice; it counts once.\(limit)", isOutcome: true)
        case .unknown:
            Notice(
                .warning,
                "It may have been done.",
                "The database did not answer in time. Look at the changes below before you try again.",
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
        case .overloaded: "Too many requests are waiting; try again in a while."
        case .notFound:
            "The user is not in the application’s table that message_usage refers to; add the user there first."
        case .conflict where isGrant:
            "This form granted another number of messages before. Look at the changes below, then fill it in anew."
        case .refused where isGrant: "The limit would be more than 2,147,483,647; grant fewer messages."
        case .done, .repeated, .unknown, .conflict, .refused, .failed:
            "The database refused the change; the service’s log has the reason."
        }
    }
}
