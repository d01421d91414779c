import TestSupport
import Testing
import Usage

@testable import LineProtocol

@Suite("Decoded field lines")
struct FieldLineTests {
    @Test("Quotes and backslashes are removed")
    func quotes() {
        let line = FieldLine("+OK a=1 b=\"two words\" c=\"\\\"\\\\\" d=\"\" e=f=g\r\n")
        #expect(line?.status == "OK")
        #expect(line?.fields.map(\.name) == ["a", "b", "c", "d", "e"])
        #expect(line?.fields.map(\.value) == ["1", "two words", "\"\\", "", "f=g"])
        #expect(line?["b"] == "two words")
        #expect(line?["z"] == nil)
    }

    @Test("The line end and all fields are optional")
    func bare() {
        for text in ["+OK", "+OK\n", "+OK\r\n"] {
            #expect(FieldLine(text) == FieldLine(status: "OK", fields: []))
        }
    }

    @Test(
        "A line of another form is refused",
        arguments: [
            "", "OK", "-ERR unknown", "+", "+ok", "+OK ", "+OK  a=1", "+OK a", "+OK =1", "+OK a=", "+OK a=1 a=2",
            "+OK a=\"", "+OK a=\"1", "+OK a=\"\\n\"", "+OK a=\"\\", "+OK a=\"1\"b=2", "+OK a=1\"", "+OK a=1\\",
            "+OK A=1",
        ]
    )
    func refused(text: String) {
        #expect(FieldLine(text) == nil)
    }

    @Test("Any answer decodes to what was encoded, whatever its texts", arguments: SeededGenerator.seeds)
    func roundTrip(seed: UInt64) throws {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<1_000 {
            let answer = FieldLineTests.answer(&generator)
            let snapshot = answer.snapshot
            let text = encoded(.answer(answer))
            let line = try #require(FieldLine(text), "seed \(seed), line \(text)")
            let expected: [(String, String?)] = [
                ("user", answer.user.description), ("plan", snapshot.plan.name), ("state", snapshot.state.rawValue),
                ("tier", snapshot.tier.rawValue), ("display", snapshot.display.rawValue),
                ("used", String(snapshot.used)), ("held", snapshot.held > 0 ? String(snapshot.held) : nil),
                ("limit", snapshot.limit.map(String.init) ?? "unlimited"),
                ("remaining", snapshot.remaining.map(String.init) ?? "unlimited"), ("period", snapshot.period.label),
                ("renews", answer.isDetailed ? snapshot.renewsAt?.text : nil),
                ("grace_until", answer.graceUntil?.text), ("next_plan", answer.nextPlan),
                ("day", snapshot.trialDay.map { String($0.day) }), ("days", snapshot.trialDay.map { String($0.days) }),
                ("crossed", answer.crossed?.rawValue), ("retry_after", answer.retryAfterSeconds.map(String.init)),
                ("previous_plan", snapshot.previousPlan), ("label", answer.isDetailed ? snapshot.label : nil),
                ("accessible", answer.isDetailed ? snapshot.accessible : nil), ("notice", snapshot.notice),
                ("banner", snapshot.banner),
            ]
            for (name, value) in expected { #expect(line[name] == value, "seed \(seed), line \(text)") }
            let order = line.fields.compactMap { FieldLineTests.order.firstIndex(of: $0.name) }
            #expect(order.count == line.fields.count && order == order.sorted(), "seed \(seed), line \(text)")
        }
    }

    private static let order = [
        "user", "plan", "state", "tier", "display", "used", "held", "limit", "remaining", "period", "resets", "expires",
        "renews", "grace_until", "day", "days", "crossed", "reason", "retry_after", "replayed", "previous_plan",
        "next_plan", "label", "accessible", "notice", "banner",
    ]

    private static func word(_ generator: inout SeededGenerator) -> String {
        let letters = Array("ab \"\\=é🙂—+\u{2028}")
        let count = Int.random(in: 0...12, using: &generator)
        return String((0..<count).map { _ in letters.randomElement(using: &generator) ?? "a" })
    }

    static func answer(_ generator: inout SeededGenerator) -> Answer {
        let cycles: [Plan.Cycle] = [.monthly, .trial(days: 3), .lifetime]
        let plan = Plan(
            name: word(&generator),
            label: word(&generator),
            cycle: cycles.randomElement(using: &generator) ?? .monthly,
            allowance: 800
        )
        var snapshot = UsageSnapshot(
            plan: plan,
            state: SubscriptionState.allCases.randomElement(using: &generator) ?? .active,
            period: BillingPeriod(storedLabel: word(&generator)),
            used: Int.random(in: 0...1_000, using: &generator),
            held: Int.random(in: 0...2, using: &generator),
            limit: Bool.random(using: &generator) ? Int.random(in: 0...1_000, using: &generator) : nil,
            denialReason: Bool.random(using: &generator) ? DenialReason.allCases.randomElement(using: &generator) : nil,
            startedAt: Example.now,
            resetsAt: Bool.random(using: &generator) ? Example.december : nil,
            expiresAt: Bool.random(using: &generator) ? Example.december : nil,
            previousPlan: Bool.random(using: &generator) ? word(&generator) : nil,
            observedAt: Example.now,
            renewsAt: Bool.random(using: &generator) ? Example.december : nil
        )
        if Bool.random(using: &generator) { snapshot.nextPlan = word(&generator) }
        let refusal = DenialReason.allCases.randomElement(using: &generator) ?? .expired
        let waits = Bool.random(using: &generator)
        return Answer(
            user: UserID(high: generator.next(), low: generator.next()),
            status: [.allowed, .ok, .blocked(refusal)].randomElement(using: &generator) ?? .ok,
            snapshot: snapshot,
            crossed: Bool.random(using: &generator) ? .gentle : nil,
            retryAfterSeconds: waits ? Int64.random(in: 1...1_000_000, using: &generator) : nil,
            isDetailed: Bool.random(using: &generator)
        )
    }
}
