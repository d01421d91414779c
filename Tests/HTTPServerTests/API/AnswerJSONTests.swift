import Engine
import Foundation
import NIOCore
import TestSupport
import Testing
import Usage

@testable import HTTPServer

@Suite("An answer as JSON")
struct AnswerJSONTests {
    private func answer(
        _ plan: Plan,
        used: Int,
        limit: Int?,
        state: SubscriptionState = .active,
        status: Answer.Status = .allowed
    ) -> Answer {
        var answer = Answer(
            user: user(1),
            status: status,
            snapshot: UsageSnapshot(
                plan: plan,
                state: state,
                period: billingPeriod("2026-11"),
                used: used,
                held: 3,
                limit: limit,
                startedAt: at("2026-11-01"),
                resetsAt: at("2026-12-01"),
                previousPlan: "trial",
                observedAt: at("2026-11-10T12:00:00Z")
            )
        )
        answer.crossed = .gentle
        answer.retryAfterSeconds = 5
        return answer
    }

    @Test("has its members in the order of a line, and texts escaped as JSONSerialization escapes them")
    func members() throws {
        let label = "a \"b\" \\ / \u{8}\t\n\u{C}\r\u{1}\u{1F}\u{7F} é 名 👩‍👩‍👧"
        let odd = Plan(name: "odd", label: label, cycle: .monthly, allowance: 800)
        var detailed = answer(odd, used: 700, limit: 800, status: .ok)
        detailed.isDetailed = true
        detailed.isRepeated = true
        detailed.released = 4
        var parted = answer(.paid, used: 700, limit: 800)
        parted.snapshot.parts = [.usedUp, PartUsage(.member(user(2)), limit: PlanLimit(.member, "*"))]
        for answer in [
            answer(.paid, used: 700, limit: 800), answer(.pro, used: 9, limit: nil),
            answer(.paid, used: 800, limit: 800, status: .blocked(.limitReached)),
            answer(.paid, used: 1, limit: 800, state: .gracePeriod, status: .held), detailed, parted,
        ] {
            let json = Data(answer.json(in: Words.shipped.standard).readableBytesView)
            let object = try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
            let order = ["allowed", "unlimited"] + AnswerField.allCases.map(\.name)
            let members = try order.filter { object[$0] != nil }.map { name in
                let options: JSONSerialization.WritingOptions = [.fragmentsAllowed, .withoutEscapingSlashes]
                let value = try JSONSerialization.data(withJSONObject: #require(object[name]), options: options)
                return "\"\(name)\":\(String(decoding: value, as: UTF8.self))"
            }
            #expect(String(decoding: json, as: UTF8.self) == "{\(members.joined(separator: ","))}")
            #expect(members.count == object.count)
        }
        let json = try JSONSerialization.jsonObject(
            with: Data(detailed.json(in: Words.shipped.standard).readableBytesView)
        )
        let object = try #require(json as? [String: Any])
        #expect(object["label"] as? String == label && object["replayed"] as? Bool == true)
        #expect(object["remaining"] as? Int == 97 && object["released"] as? Int == 4)
    }

    @Test("has null for a limit that there is not, and no allowed for an answer about no message")
    func nulls() throws {
        let unlimited = String(buffer: answer(.pro, used: 9, limit: nil, status: .ok).json(in: Words.shipped.standard))
        #expect(unlimited.contains("\"limit\":null,") && unlimited.contains("\"remaining\":null,"))
        #expect(unlimited.contains("\"unlimited\":true") && !unlimited.contains("allowed"))
    }

    @Test("has a policy for each limited part in the RateLimit header fields")
    func rateLimits() {
        var snapshot = answer(.paid, used: 700, limit: 800).snapshot
        snapshot.parts = [.usedUp, PartUsage(.member(user(2)), limit: PlanLimit(.member, "*"))]
        let fields = RateLimitFields(snapshot)
        #expect(fields.policy == "\"paid\";q=800;w=2592000, \"paid.model\";q=5;w=3600")
        #expect(fields.limit == "\"paid\";r=97;t=1771200, \"paid.model\";r=0;t=600")
    }

    @Test("The allowances of models and members have null for a limit that there is not, and leave out other fields")
    func allowances() throws {
        let counted = ReportedAllowance(kind: .member, name: "\(user(2))", used: 7, held: 1, tier: .silent, weight: 1)
        let limited = ReportedAllowance(
            kind: .model,
            name: "gpt-5*",
            label: "GPT-5",
            used: 49,
            held: 2,
            limit: 50,
            tier: .blocked,
            windowLimit: 5,
            windowUsed: 2,
            windowResetsAt: at("2026-11-10T13:00:00Z"),
            weight: 3,
            fallback: "gpt-4o-mini"
        )
        let json = [limited, counted].json(of: user(1), in: billingPeriod("2026-11"))
        let object = try JSONSerialization.jsonObject(with: Data(json.readableBytesView)) as? NSDictionary
        let expected: NSDictionary = [
            "user": "\(user(1))", "period": "2026-11",
            "allowances": [
                [
                    "kind": "model", "name": "gpt-5*", "label": "GPT-5", "used": 49, "held": 2, "limit": 50,
                    "remaining": 0, "unlimited": false, "tier": "blocked", "window_limit": 5, "window_used": 2,
                    "window_remaining": 3, "window_resets": "2026-11-10T13:00:00Z", "weight": 3,
                    "fallback": "gpt-4o-mini",
                ],
                [
                    "kind": "member", "name": "\(user(2))", "used": 7, "held": 1, "limit": NSNull(),
                    "remaining": NSNull(), "unlimited": true, "tier": "silent", "weight": 1,
                ],
            ],
        ]
        #expect(object == expected)
    }
}

extension PartUsage {
    /// A model whose window is used up and opened 50 minutes before noon of November 10.
    fileprivate static let usedUp: PartUsage = {
        let window = Plan.Window(messages: 5, seconds: 3_600)
        var counter = PartCounter()
        (counter.used, counter.windowUsed) = (9, 5)
        counter.windowOpenedAt = at("2026-11-10T11:10:00Z")
        counter.windowEndsAt = at("2026-11-10T12:10:00Z")
        return PartUsage(.model("gpt-5"), limit: PlanLimit(.model, "gpt-5", window: window), counter: counter)
    }()
}
