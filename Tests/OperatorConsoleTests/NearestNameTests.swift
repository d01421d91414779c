import Testing

@testable import OperatorConsole

@Suite("The nearest name")
struct NearestNameTests {
    private let names = ["serve", "migrate", "ping", "status", "user", "report", "top", "audit", "token", "events"]

    @Test(
        "has the smallest edit distance, or else begins with the word",
        arguments: [
            ("statsu", "status"), ("stats", "status"), ("staus", "status"), ("tokens", "token"), ("tpo", "top"),
            ("Report", "report"), ("reprot", "report"), ("event", "events"), ("migrat", "migrate"), ("mig", "migrate"),
        ]
    )
    func closeWord(_ word: String, _ expected: String) { #expect(nearestName(to: word, among: names) == expected) }

    @Test("is nil if no name is close", arguments: ["", "x", "consume", "dashboard", "7f1c0a52"])
    func unknownWord(_ word: String) { #expect(nearestName(to: word, among: names) == nil) }

    @Test("is nil without names")
    func noNames() { #expect(nearestName(to: "status", among: []) == nil) }
}
