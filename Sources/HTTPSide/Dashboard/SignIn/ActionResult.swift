import Usage
import UsageStore

/// What became of an operator's action, on its way through the address of the page that tells it: sealed, so that nobody
/// can make a link that says something was done.
struct ActionResult: Equatable, Sendable {
    enum Outcome: String, Sendable {
        case done, repeated, unavailable, unknown, refused, failed

        init(_ error: StoreError) {
            self =
                switch error.code {
                case .unavailable, .overloaded: .unavailable
                case .unknown: .unknown
                case .badArgument, .notFound, .conflict, .expired: .refused
                case .internal: .failed
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
                "The database did not say in time. Look at the changes below before you try again.",
                isOutcome: true
            )
        case .refused where isGrant:
            Notice(
                .bad,
                "Nothing was changed.",
                "The limit would be more than 2,147,483,647; grant fewer messages.",
                isOutcome: true
            )
        case .refused, .failed:
            Notice(
                .bad,
                "Nothing was changed.",
                "The database refused it; the service’s log says why.",
                isOutcome: true
            )
        }
    }
}
