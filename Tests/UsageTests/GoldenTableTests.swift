import Foundation
import Testing
import Usage

@testable import TestSupport

/// The golden table, `Tests/golden/answers.txt`, which black-box tests run over the ports and in SQL. The independent
/// model brings a user into the state of an example; then it and the functions of the service answer.
@Suite("The golden table")
struct GoldenTableTests {
    @Test("is what the model and the service answer", arguments: GoldenTable.examples)
    func answer(example: GoldenTable.Example) throws {
        var model = try example.model()
        let usage = model[ada, at: example.asked].usage()
        var snapshot = model.answer(ada, usage).snapshot
        let check = snapshot.check(example.messages, of: ada)
        let (answer, reply): (Answer, CountingModel.Reply) =
            switch example.verb {
            case "CONSUME":
                (snapshot.consume(example.messages, of: ada), model[ada, at: example.asked].take(example.messages))
            case "RESERVE":
                (
                    snapshot.reserve(example.messages, of: ada),
                    model[ada, at: example.asked].take(example.messages, seconds: 60)
                )
            default: (check, usage.decision(example.messages))
            }
        #expect(answer.inTable == example.answer)
        #expect(answer.banner?.text ?? "" == example.banner)
        #expect(answer == model.answer(ada, reply) && answer.fields == reply.fields, "the model")
        if answer.reason != nil {
            #expect(check == answer)
        } else {
            #expect(check.status == .allowed && check.isShadow == answer.isShadow)
        }
    }
}

enum GoldenTable {
    struct Example: Sendable, CustomTestStringConvertible {
        var line: String
        var plan: String
        var before: [String: String]
        var verb: String
        var messages: Int
        var answer: [String: String]
        var banner: String

        var testDescription: String { line }
        var start: Instant { at(before["from"] ?? "2026-03-15T09:30:00Z") }
        var asked: Instant { before["at"].map(at) ?? start }
    }

    private static let lines: [String] = {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let text = try! String(contentsOf: root.appending(path: "golden/answers.txt"), encoding: .utf8)
        return text.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
    }()

    static let plans: [Plan] = lines.filter { $0.hasPrefix("plan ") }.map { line in
        let words = line.split(separator: " ").map(String.init)
        let options = pairs(words.dropFirst(3))
        let number = { (name: String) in options[name].flatMap { Int($0) } }
        let cycles: [String: Plan.Cycle] = ["monthly": .monthly, "weekly": .weekly, "daily": .daily]
        return Plan(
            name: words[1],
            label: words[1].capitalized,
            cycle: cycles[words[2]] ?? number("days").map { .trial(days: $0) } ?? .lifetime,
            timeZone: options["zone"],
            allowance: number("allowance"),
            window: number("window").map { Plan.Window(messages: $0, seconds: number("seconds")!) },
            isEnforced: options["enforced"] != "false",
            gentlePercent: number("gentle") ?? 80,
            prominentPercent: number("prominent") ?? 95
        )
    }

    static let examples: [Example] = lines.filter { !$0.hasPrefix("plan ") }.map { line in
        let parts = line.split(separator: "|", omittingEmptySubsequences: false)
            .map { $0.trimmingCharacters(in: .whitespaces) }
        let request = parts[2].split(separator: " ")
        let answer = parts[3].split(separator: " ").map(String.init)
        return Example(
            line: line,
            plan: parts[0],
            before: pairs(parts[1].split(separator: " ").map(String.init)),
            verb: String(request[0]),
            messages: Int(request[1])!,
            answer: pairs(["status=\(answer[0])"] + answer.dropFirst()),
            banner: parts[4]
        )
    }

    private static func pairs(_ words: some Sequence<String>) -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: words.map { word in
                let parts = word.split(separator: "=", maxSplits: 1)
                return (String(parts[0]), String(parts[1]))
            }
        )
    }
}

extension GoldenTable.Example {
    /// A model in which `ada` is as the example says.
    fileprivate func model() throws -> ReferenceModel {
        var model = ReferenceModel(plans: Plan.initial + GoldenTable.plans)
        var change = PlanChange(user: ada, plan: plan)
        let period = try model.setPlan(change, at: start).snapshot.period
        let number = { (name: String) in before[name].flatMap { Int($0) } }
        if let held = number("held") {
            _ = try model.reserve(ada, messages: held, key: messageKey("hold"), ttlSeconds: 86_400, at: start)
        } else if ["used", "window", "limit"].contains(where: { before[$0] != nil }) {
            _ = model.consume(ada, at: start)
        }
        if let used = number("used") { model.setCount(ada, period: period, count: used, at: start) }
        if let window = number("window") { model[ada, at: start].window!.used = window }
        if let limit = before["limit"] { model.setLimit(ada, period: period, limit: Int(limit)) }
        change.state = before["state"].flatMap { SubscriptionState(rawValue: $0) }
        change.startedAt = before["started"].map(at)
        change.expiresAt = before["expires"].map(at)
        change.graceUntil = before["grace_until"].map(at)
        if change != PlanChange(user: ada, plan: plan) { _ = try model.setPlan(change, at: start) }
        return model
    }
}

extension Answer {
    /// The fields of the table, without the banner.
    fileprivate var inTable: [String: String] {
        let window = snapshot.otherAllowancesShown.first { $0.name == .window }
        let words: [String: String?] = [
            "status": "\(status)".prefix { $0 != "(" }.uppercased(),
            "used": "\(snapshot.used)",
            "held": snapshot.held == 0 ? nil : "\(snapshot.held)",
            "tier": snapshot.tier.rawValue,
            "display": snapshot.display.rawValue,
            "remaining": snapshot.remaining.map(String.init) ?? "unlimited",
            "window_used": window?.used.map(String.init),
            "window_remaining": window?.remaining.map(String.init),
            "crossed": crossed?.rawValue,
            "reason": reason?.rawValue,
            "retry_after": retryAfterSeconds.map(String.init),
            "shadow": isShadow ? "1" : nil,
        ]
        return words.compactMapValues { $0 }
    }
}
