import Testing

@testable import OperatorConsole

@Suite("The report of a link")
struct CustomerLinkReportTests {
    private func text(
        isNew: Bool = true,
        _ events: [String: Int],
        plan: String? = "paid",
        expires: String? = nil
    ) -> String {
        CustomerLinkReport(
            user: "ada",
            isNew: isNew,
            events: events,
            plan: plan,
            state: plan.map { _ in "active" },
            expires: expires
        ).text
    }

    @Test("has the events by their outcome, and what the user has now")
    func report() {
        #expect(
            text(["applied": 1], expires: "2026-12-24T09:30:00Z")
                == "1 event applied; ada: paid, active until 2026-12-24T09:30:00Z"
        )
        #expect(text(["outdated": 1, "applied": 1_200]) == "1,200 events applied, 1 outdated; ada: paid, active")
        #expect(text(["waiting": 2], plan: nil) == "2 events waiting; ada: no subscription")
        #expect(text([:], plan: nil) == "no event waited for a user; ada: no subscription")
        #expect(text(isNew: false, [:]) == "nothing changed; it belongs to ada already")
    }
}
