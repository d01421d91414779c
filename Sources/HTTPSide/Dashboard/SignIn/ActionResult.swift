import Usage
import UsageStore

/// The result of an operator's action, passed in the address of the page that shows it. The seal prevents forged links
/// to results.
struct ActionResult: Equatable, Sendable {
    enum Outcome: String, Sendable {
        case done, repeated, unavailable, unknown, tooLarge, conflict, noUser, failed

        init(_ error: StoreError) {
            self =
                switch error.code {
                case .unavailable, .overloaded: .unavailable
                case .unknown: .unknown
                // The only value of a page that the database refuses is a grant beyond the largest limit.
                case .badArgument: .tooLarge
                case .conflict: .conflict
                // A page acts on the current period, which each user has.
                case .notFound: .noUser
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

    /// - Returns: nil unless this service sealed the text for this visitor and this user.
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
        case .unavailable:
            Notice(
                .bad,
                "Nothing was changed.",
                "The database could not be reached in time; try again in a while.",
                isOutcome: true
            )
        case .unknown:
            Notice(
                .warning,
                "It may have been done.",
                "The database did not answer in time. Look at the changes below before you try again.",
                isOutcome: true
            )
        case .tooLarge:
            Notice(
                .bad,
                "Nothing was changed.",
                "The limit would be more than 2,147,483,647; grant fewer messages.",
                isOutcome: true
            )
        case .conflict:
            Notice(
                .bad,
                "Nothing was changed.",
                "This form has granted another number of messages already; open it again for a new grant.",
                isOutcome: true
            )
        case .noUser:
            Notice(
                .bad,
                "Nothing was changed.",
                "There is no such user in the table of users that message_usage refers to.",
                isOutcome: true
            )
        case .failed:
            Notice(
                .bad,
                "Nothing was changed.",
                "The database refused the change; the service’s log has the reason.",
                isOutcome: true
            )
        }
    }
}
