import Foundation
import HeadroomClient
import TestSupport
import Testing

@Suite("Each request on the real service")
struct VerbTests {
    @Test("A new user's messages are counted, held, committed and given back")
    func counting() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            let first = try await client.consume(user)
            #expect(first.isAllowed && first.status.used == 1 && first.status.remaining == 99)
            #expect(first.status.display == .trial && first.status.day == 1 && first.status.days == 3)
            #expect(first.status.banner == "99 of 100 trial messages remaining")
            #expect(try await client.check(user, messages: 99).isAllowed)
            let key = messageKey("draft 1")
            let held = try await client.reserve(user, messages: 2, key: key)
            #expect(held.isAllowed && held.status.held == 2 && held.status.used == 1)
            #expect(try await client.commit(user, key: key).status.used == 3)
            #expect(try await client.release(user, key: key).messages == 2)
            let usage = try await client.usage(of: user)
            #expect(usage.used == 1 && usage.label == "Trial — Day 1 of 3")
            guard case .blocked(_, .exceedsRemaining) = try await client.consume(user, messages: 100) else {
                Issue.record("more than the trial has was allowed")
                return
            }
        }
    }

    @Test("A client that answers in a language has the sentences of every answer in it")
    func languages() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            let german = client.answering(in: LanguageTag("de-AT"))
            #expect(try await german.consume(user).status.banner == "Noch 99 von 100 Probenachrichten")
            let outcome = try await german.withHold(user) { hold in hold.status.banner }
            guard case .completed(let banner, let decision) = outcome else {
                Issue.record("the hold ended as \(outcome)")
                return
            }
            #expect(banner == "Noch 98 von 100 Probenachrichten")
            #expect(decision.status.banner == "Noch 98 von 100 Probenachrichten")
            let usage = try await german.usage(of: user)
            #expect(usage.label == "Trial – Tag 1 von 3" && usage.stateLabel == "Probezeit")
            #expect(try await client.usage(of: user).stateLabel == "Trial")
            #expect(try await german.answering(in: nil).usage(of: user).stateLabel == "Trial")
            #expect(try await german.history(of: user).count == 1)
        }
    }

    @Test("A message with a model of a member counts under the limits of both, and names the model to go on with")
    func modelsAndMembers() async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(
            """
            insert into headroom.plan_limits (plan, kind, name, allowance, weight, fallback)
            values ('trial', 'model', 'large-*', 2, 3, 'small'), ('trial', 'member', '*', 20, 1, null)
            """
        )
        let service = try await ServiceProcess.start(databaseURL: database.conninfo)
        try await HeadroomClient.with(service) { client in
            let (account, member) = (UserID.random, UserID.random)
            let first = try await client.consume(account, model: "large-1", member: member).status
            #expect(first.used == 3 && first.model == ModelUsage(name: "large-1", limit: 2, used: 1, remaining: 1))
            #expect(first.member == MemberUsage(id: member, limit: 20, used: 3, remaining: 17))
            let held = try await client.withHold(account, model: "large-2") { $0.status.model?.remaining }
            #expect(held.result == 0)
            guard case .blocked(let refused, .modelLimitReached) = try await client.check(account, model: "large-3")
            else {
                Issue.record("a model that is used up was allowed")
                return
            }
            #expect(refused.fallback == "small" && refused.retryAfter == nil)
            let other = try await client.consume(account, model: refused.fallback, member: member).status
            #expect(other.used == 7 && other.model == ModelUsage(name: "small") && other.member?.used == 4)
            let usage = try await client.usage(of: account, model: "large-1")
            #expect(usage.model?.used == 2 && usage.member == nil)
            #expect(try await client.usage(of: account, period: usage.period, member: member).member?.used == 4)
            let reset = try await client.resetUsage(of: account, model: "large-1")
            #expect(reset.used == 7)
            #expect(try await client.check(account, model: "large-1").status.model?.used == 0)
        }
    }

    @Test("A caller's key counts once, and the second call is repeated, not allowed")
    func keys() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let (user, key) = (UserID.random, messageKey("message 4711"))
            #expect(try await client.consume(user, key: key).isAllowed)
            let again = try await client.consume(user, key: key)
            guard case .repeated(let status) = again else {
                Issue.record("the second call was \(again)")
                return
            }
            #expect(status.used == 1 && !again.isAllowed)
            let error = await #expect(throws: HeadroomError.self) {
                try await client.consume(user, messages: 2, key: key)
            }
            #expect(error?.code == .conflict && error?.key == key)
        }
    }

    @Test("A repeated hold is not allowed again, and a released or expired key is refused")
    func repeatedHolds() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            let (kept, given, short) = (messageKey("kept"), messageKey("given"), messageKey("short"))
            for key in [kept, given] {
                #expect(try await client.reserve(user, key: key).isAllowed)
                let again = try await client.reserve(user, key: key)
                guard case .repeated = again else {
                    Issue.record("the second hold was \(again)")
                    return
                }
            }
            #expect(try await client.commit(user, key: kept).isAllowed)
            guard case .repeated = try await client.commit(user, key: kept),
                case .repeated = try await client.reserve(user, key: kept)
            else {
                Issue.record("a committed key was not repeated")
                return
            }
            let part = messageKey("part")
            _ = try await client.reserve(user, messages: 9, key: part)
            let tooMany = await #expect(throws: HeadroomError.self) {
                try await client.commit(user, messages: 10, key: part)
            }
            #expect(tooMany?.code == .badArgument)
            #expect(try await client.commit(user, messages: 0, key: part).status.used == 1)
            let another = await #expect(throws: HeadroomError.self) { try await client.commit(user, key: part) }
            #expect(another?.code == .conflict)
            #expect(try await client.release(user, key: given).messages == 1)
            let released = await #expect(throws: HeadroomError.self) { try await client.reserve(user, key: given) }
            #expect(released?.code == .conflict && released?.isTransient == false)
            _ = try await client.reserve(user, key: short, ttl: .seconds(1))
            try await waitUntil("the hold ends") { try await client.usage(of: user).held == 0 }
            let expired = await #expect(throws: HeadroomError.self) { try await client.reserve(user, key: short) }
            #expect(expired?.code == .expired)
            let usage = try await client.usage(of: user)
            #expect(usage.used == 1 && usage.held == 0)
        }
    }

    @Test("A message whose answer was lost is allowed, not repeated, when the client sends it again")
    func ownRetry() async throws {
        let service = try await ServiceProcess.start()
        let proxy = try await service.proxy()
        defer { proxy.close() }
        let client = HeadroomClient(.withTestTimeouts(proxy.endpoint))
        let user = UserID.random
        for number in 1...5 {
            let key = messageKey("message \(number)")
            proxy.arm(.abandon("CONSUME"))
            let first = try await client.consume(user, key: key)
            #expect(first.isAllowed && first.status.used == number && proxy.cuts == number)
            guard case .repeated = try await client.consume(user, key: key) else {
                Issue.record("the second call was not repeated")
                break
            }
        }
        await client.shutDown()
    }

    @Test("A literal, a UUID and the digest of a long id count once, however often they are sent")
    func kindsOfKeys() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let longID = String(repeating: "thread/4711/message/", count: 20)
            let keys: [MessageKey] = ["draft-1", MessageKey(UUID()), try MessageKey(digestOf: longID)]
            for (number, key) in keys.enumerated() {
                let user = UserID(UUID())
                for attempt in 1...3 {
                    let status = try await client.consume(user, key: key).status
                    #expect(status.used == 1 && status.isRepeated == (attempt > 1), "key \(number)")
                }
            }
            #expect(throws: InvalidMessageKey.self) { try MessageKey(longID) }
        }
    }

    @Test("A period is selected by its label, and dates arrive at the service")
    func periodsAndDates() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID(UUID())
            // A whole second, because dates are sent without fractions.
            let end = Date(timeIntervalSince1970: 4_070_908_800)
            let change = PlanChange(user: user, plan: "paid", state: .cancelled, expiresAt: end)
            #expect(try await client.setPlan(change).expirationDate == end)
            let period = try await client.consume(user).status.period
            #expect(try await client.usage(of: user, period: period).used == 1)
            #expect(try await client.report(period).messages == 1)
            #expect(try await client.top(1, in: period).map(\.user) == [user])
            #expect(try await client.resetUsage(of: user, period: period).used == 0)
            let never = BillingPeriod(year: 2001, month: 1)
            let error = await #expect(throws: HeadroomError.self) { try await client.usage(of: user, period: never) }
            #expect(error?.code == .notFound)
        }
    }

    @Test("A period may be a day or a week", arguments: [("daily", 10), ("weekly", 8)])
    func daysAndWeeks(cycle: String, length: Int) async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute("update headroom.plans set cycle = '\(cycle)' where plan = 'paid'")
        let service = try await ServiceProcess.start(databaseURL: database.conninfo)
        try await HeadroomClient.with(service) { client in
            let user = UserID(UUID())
            _ = try await client.setPlan(PlanChange(user: user, plan: "paid"))
            let period = try await client.consume(user).status.period
            #expect(period.label.count == length && BillingPeriod(period.label) == period)
            #expect(try await client.usage(of: user, period: period).used == 1)
            #expect(try await client.report(period).messages == 1)
            #expect(try await client.top(1, in: period).map(\.period) == [period])
            #expect(try await client.history(of: user).map(\.period) == [period])
        }
    }

    @Test("The requests of operators and dashboards work")
    func operating() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            try await client.ping()
            let change = PlanChange(user: user, plan: "paid", state: .cancelled)
            #expect(try await client.setPlan(change).state == .cancelled)
            #expect(try await client.consume(user, messages: 5).status.expires != nil)
            #expect(try await client.grant(user, messages: 10, reason: "an outage").limit == 810)
            let history = try await client.history(of: user)
            #expect(history.map(\.used) == [5] && history.first?.limit == 810)
            #expect(try await client.top(1).first == history.first)
            #expect(try await client.report().messages == 5)
            #expect(try await client.resetUsage(of: user).used == 0)
            try await client.forget(user)
            #expect(try await client.usage(of: user).plan == "trial")
            #expect(try await client.info()["database"] != nil)
        }
    }

    @Test("A refused request throws its code and is not sent again")
    func refused() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            let key = messageKey("nothing")
            let unknown = await #expect(throws: HeadroomError.self) { try await client.commit(user, key: key) }
            #expect(unknown?.code == .notFound && unknown?.message.isEmpty == false)
            let wrong = await #expect(throws: HeadroomError.self) { try await client.consume(user, messages: 0) }
            #expect(wrong?.code == .badArgument && wrong?.isTransient == false)
            let injected = messageKey("a\r\nFORGET \(user)")
            let control = await #expect(throws: HeadroomError.self) { try await client.consume(user, key: injected) }
            #expect(control?.code == .badArgument)
        }
    }

    @Test("A thousand tasks share one connection, and each gets its own answer")
    func pipelining() async throws {
        let service = try await ServiceProcess.start()
        let proxy = try await service.proxy(.init(chunkBytes: 1...50), seed: 1)
        defer { proxy.close() }
        let client = HeadroomClient(.withTestTimeouts(proxy.endpoint))
        try await withThrowingTaskGroup { group in
            for number in 1...1_000 {
                group.addTask {
                    let user = UserID(high: 7, low: UInt64(number))
                    let decision = try await client.consume(user, messages: 1 + number % 50)
                    #expect(decision.status.user == user && decision.status.used == 1 + number % 50)
                }
            }
            try await group.waitForAll()
        }
        #expect(proxy.connections == 1)
        await client.shutDown()
    }

    @Test("Keys of the client are unique, also among clients")
    func ownKeys() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { one in
            try await HeadroomClient.with(service) { other in
                let user = UserID.random
                for client in [one, other, one, other] {
                    let decision = try await client.consume(user)
                    #expect(!decision.status.isRepeated)
                }
                let usage = try await one.usage(of: user)
                #expect(usage.used == 4)
            }
        }
    }
}
