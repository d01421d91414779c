import Testing

@testable import OperatorConsole

@Suite("The nearest name")
struct NearestNameTests {
    private let names = ["serve", "migrate", "ping", "status", "user", "report", "top", "audit", "token", "events"]

    @Test(
        "is the one with the fewest mistakes",
        arguments: [
            ("statsu", "status"), ("stats", "status"), ("staus", "status"), ("tokens", "token"), ("tpo", "top"),
            ("Report", "report"), ("reprot", "report"), ("event", "events"), ("migrat", "migrate"), ("mig", "migrate"),
        ]
    )
    func near(_ word: String, _ meant: String) {
        #expect(nearestName(to: word, among: names) == meant)
    }

    @Test("is nil if no name is close", arguments: ["", "x", "consume", "dashboard", "7f1c0a52"])
    func far(_ word: String) {
        #expect(nearestName(to: word, among: names) == nil)
    }

    @Test("is nil without names")
    func none() {
        #expect(nearestName(to: "status", among: []) == nil)
    }
}
