import Engine

/// The result of a replay, passed in the URL of the event's page and signed against forged links.
struct ReplayResult: Equatable, Sendable {
    /// The event's new outcome, or why there is none: `unavailable`, `overloaded`, `refused`.
    var outcome: String

    init(outcome: String) {
        self.outcome = outcome
    }

    init(_ failure: SessionPool.Failure) {
        switch failure {
        case .overloaded: outcome = "overloaded"
        case .closed, .cancelled, .tooLate: outcome = "unavailable"
        case .database(let error): outcome = error.isTransient ? "unavailable" : "refused"
        }
    }

    func signed(_ name: BillingEventLog.Name, viewer: Viewer, signer: BrowserSigner) -> String {
        "\(outcome).\(signer.signature(of: text(name), for: viewer.cookie))"
    }

    /// - Returns: nil unless it was signed for this viewer and this event.
    init?(_ signed: String, _ name: BillingEventLog.Name, viewer: Viewer, signer: BrowserSigner) {
        let parts = signed.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2 else { return nil }
        outcome = parts[0]
        guard signer.isValid(parts[1], of: text(name), for: viewer.cookie) else { return nil }
    }

    private func text(_ name: BillingEventLog.Name) -> String {
        "replay \(outcome) \(name.source.utf8.count) \(name.source)\(name.id)"
    }

    var notice: Notice {
        let (kind, title, text): (Notice.Kind, String, String) =
            switch outcome {
            case "applied": (.good, "Applied.", "The user now has what the event gives.")
            case "waiting", "outdated", "ignored":
                (.good, "Replayed.", "The event could be decoded; it changes nothing now.")
            case "failed": (.bad, "It still fails.", "Nothing was changed. Fix the cause below first.")
            case "unavailable":
                (.bad, "Nothing was changed.", "The database could not be reached in time; try later.")
            case "overloaded": (.bad, "Nothing was changed.", "Too many requests are waiting; try again in a moment.")
            default:
                (.bad, "Nothing was changed.", "The database refused the event; the service’s log has the reason.")
            }
        return Notice(kind, title, text, isOutcome: true)
    }
}
