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
        for answer in [
            answer(.paid, used: 700, limit: 800), answer(.pro, used: 9, limit: nil),
            answer(.paid, used: 800, limit: 800, status: .blocked(.limitReached)),
            answer(.paid, used: 1, limit: 800, state: .gracePeriod, status: .held), detailed,
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
}
