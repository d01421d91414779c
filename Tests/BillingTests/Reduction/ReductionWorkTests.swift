import TestSupport
import Testing
import Usage

@testable import Billing

/// A user may cause any number of events, so an event's work must grow with the number of the customer's events, and
/// not with its square.
@Suite("The work of a reduction")
struct ReductionWorkTests {
    /// Who transfers a trial to whom, again and again.
    enum Path: CaseIterable {
        case thereAndBack, overAnonymousIds, toOtherUsers
        /// First another subscription is transferred there and back, by one of the two users.
        case crossing
    }

    private let cleo = user(3)

    /// The giver and the receiver of a transfer.
    private func names(_ path: Path, _ number: Int, of count: Int) -> [String] {
        let (here, there) = (number.isMultiple(of: 2) ? 0 : 1, number.isMultiple(of: 2) ? 1 : 0)
        return switch path {
        case .thereAndBack: ["\([ada, ben][here])", "\([ada, ben][there])"]
        case .overAnonymousIds: [number == 0 ? "\(ada)" : "sha256:\(here)", "sha256:\(there)"]
        case .toOtherUsers: (number...number + 1).map { $0 == 0 ? "\(ada)" : "\(user(UInt64(1_000 + $0)))" }
        case .crossing where number < count / 2: ["\([cleo, ben][here])", "\([cleo, ben][there])"]
        case .crossing: ["\([ada, ben][here])", "\([ada, ben][there])"]
        }
    }

    private func history(_ path: Path, transfers count: Int) -> CustomerHistory {
        let start = day("2026-01-02")
        let transfers = (0..<count).map { number in
            let names = names(path, number, of: count)
            return RecordedEvent(
                key: RecordedEvent.Key(source: "revenuecat", id: "\(number)"),
                at: start.advanced(bySeconds: Int64(number)),
                receivedAt: start,
                appliedAt: start,
                identities: [names[1]],
                effects: [.transferred(from: [names[0]], to: [names[1]])]
            )
        }
        let bought = event("2026-01-01", by: ["\(ada)"], trial(until: "2026-01-08"), source: "revenuecat")
        let second = event("2025-12-31", by: ["\(cleo)"], effect(.purchased, "U", plan: "paid"), source: "revenuecat")
        return CustomerHistory(
            events: [bought, second] + transfers,
            plans: CustomerHistories.plans,
            allowances: CustomerHistories.allowances
        )
    }

    private func steps(_ path: Path, transfers count: Int) -> Int {
        let (history, meter) = (history(path, transfers: count), WorkMeter())
        let state = CustomerReducer.reduce(history, at: day("2026-01-03"), meter: meter)
        #expect(state.results.count == count + 2)
        return meter.steps
    }

    @Test("is linear in the number of transfers", arguments: Path.allCases)
    func transfers(path: Path) {
        let (few, many) = (steps(path, transfers: 1_500), steps(path, transfers: 15_000))
        #expect(few > 0)
        // A search among the owners takes some more steps.
        #expect(many <= 15 * few, "\(few) steps, then \(many)")
    }
}
