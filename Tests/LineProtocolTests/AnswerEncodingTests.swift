import TestSupport
import Testing
import Usage

@testable import LineProtocol

/// Usage snapshots of one user at one instant.
enum Example {
    static let now = Instant("2026-11-21T09:30:00Z") ?? Instant(secondsSince1970: 0)
    static let december = Instant("2026-12-01") ?? Instant(secondsSince1970: 0)
    static let november = BillingPeriod(year: 2026, month: 11)

    static let trial = UsageSnapshot(
        plan: .trial,
        state: .trial,
        period: BillingPeriod(planNamed: "trial"),
        used: 0,
        limit: 100,
        startedAt: now,
        expiresAt: now.advanced(bySeconds: 3 * 86_400),
        observedAt: now
    )

    static func paid(used: Int, held: Int = 0, state: SubscriptionState = .active) -> UsageSnapshot {
        UsageSnapshot(
            plan: .paid,
            state: state,
            period: november,
            used: used,
            held: held,
            limit: 800,
            startedAt: Instant("2026-11-01") ?? now,
            resetsAt: december,
            observedAt: now
        )
    }
}

@Suite("Answer lines")
struct AnswerEncodingTests {
    private func line(_ answer: Answer) -> String { encoded(.answer(answer)) }

    @Test("The answer to a new user's first message has the fields of docs/reference/fields.md in its order")
    func chained() throws {
        let request = try #require(decode("CONSUME \(userText)\n").first)
        guard case .command(.consume(let user, let messages, _)) = request else {
            Issue.record("\(request) is no CONSUME")
            return
        }
        var snapshot = Example.trial
        #expect(
            line(snapshot.consume(messages, of: user))
                == "+ALLOWED user=7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11 plan=trial state=trial tier=silent "
                + "display=trial used=1 limit=100 remaining=99 period=trial expires=2026-11-24T09:30:00Z day=1 days=3 "
                + "banner=\"99 of 100 trial messages remaining\"\r\n"
        )
    }

    @Test("A monthly plan below 80 % has `resets`, and no other optional field")
    func silent() {
        var snapshot = Example.paid(used: 41)
        #expect(
            line(snapshot.consume(1, of: user))
                == "+ALLOWED user=\(userText) plan=paid state=active tier=silent display=hidden used=42 limit=800 "
                + "remaining=758 period=2026-11 resets=2026-12-01T00:00:00Z\r\n"
        )
    }

    @Test("The message that crosses into a tier has `crossed`, and held messages have `held`")
    func crossed() {
        var snapshot = Example.paid(used: 638, held: 1)
        #expect(
            line(snapshot.consume(1, of: user))
                == "+ALLOWED user=\(userText) plan=paid state=active tier=gentle display=compact used=639 held=1 "
                + "limit=800 remaining=160 period=2026-11 resets=2026-12-01T00:00:00Z crossed=gentle "
                + "banner=\"You have 160 conversations left this month\"\r\n"
        )
    }

    @Test("A refusal has the usage before it, a reason, and when to retry")
    func blocked() {
        var snapshot = Example.paid(used: 800)
        #expect(
            line(snapshot.consume(1, of: user))
                == "+BLOCKED user=\(userText) plan=paid state=active tier=blocked display=blocked used=800 limit=800 "
                + "remaining=0 period=2026-11 resets=2026-12-01T00:00:00Z reason=limit_reached retry_after=829800 "
                + "banner=\"We've had a lot of great conversations this month! Your next session refreshes on "
                + "December 1.\"\r\n"
        )
    }

    @Test("A cancelled subscription has `resets` and `expires`")
    func cancelled() {
        var snapshot = Example.paid(used: 5, state: .cancelled)
        snapshot.expiresAt = Instant("2026-12-15T12:00:00Z")
        snapshot.previousPlan = "pro"
        #expect(
            line(snapshot.usage(of: user))
                == "+OK user=\(userText) plan=paid state=cancelled tier=silent display=hidden used=5 limit=800 "
                + "remaining=795 period=2026-11 resets=2026-12-01T00:00:00Z expires=2026-12-15T12:00:00Z "
                + "previous_plan=pro label=Premium state_label=Cancelled accessible=\"5 of 800 messages used this month\" "
                + "notice=\"Your subscription is active until December 15. You can resubscribe anytime.\"\r\n"
        )
    }

    @Test("Only USAGE has `renews`, in the place of `expires`")
    func renews() throws {
        var snapshot = Example.paid(used: 5)
        snapshot.expiresAt = Instant("2026-12-15T12:00:00Z")
        snapshot.renews = true
        snapshot.renewsAt = snapshot.expiresAt
        #expect(
            line(snapshot.usage(of: user))
                == "+OK user=\(userText) plan=paid state=active tier=silent display=hidden used=5 limit=800 "
                + "remaining=795 period=2026-11 resets=2026-12-01T00:00:00Z renews=2026-12-15T12:00:00Z "
                + "label=Premium state_label=Active accessible=\"5 of 800 messages used this month\"\r\n"
        )
        #expect(try #require(FieldLine(line(snapshot.check(1, of: user))))["renews"] == nil)
        #expect(try #require(FieldLine(line(snapshot.consume(1, of: user))))["renews"] == nil)
    }

    @Test("The next plan is shown with a renewal only")
    func nextPlan() throws {
        var snapshot = Example.paid(used: 5)
        snapshot.expiresAt = Instant("2026-12-15T12:00:00Z")
        snapshot.details = SubscriptionDetails(nextPlan: "pro plus")
        #expect(try #require(FieldLine(line(snapshot.usage(of: user))))["next_plan"] == nil)
        snapshot.renewsAt = snapshot.expiresAt
        #expect(line(snapshot.usage(of: user)).contains(" next_plan=\"pro plus\" label=Premium "))
        #expect(try #require(FieldLine(line(snapshot.consume(1, of: user))))["next_plan"] == nil)
    }

    @Test("USAGE has price, address and steps, in their order")
    func details() throws {
        var snapshot = Example.paid(used: 5, state: .gracePeriod)
        snapshot.details = SubscriptionDetails(price: "9.99", currency: "USD", manage: "https://example.org/me")
        #expect(
            line(snapshot.usage(of: user)).contains(
                " label=Premium state_label=\"Billing issue\" accessible=\"5 of 800 messages used this month\" price=9.99 "
                    + "currency=USD manage=https://example.org/me steps=\"Open your subscription settings, check the "
                    + "payment method, then come back — I'll be right here.\" notice="
            )
        )
        let check = try #require(FieldLine(line(snapshot.check(1, of: user))))
        for name in ["state_label", "price", "currency", "manage", "steps"] { #expect(check[name] == nil) }
    }

    @Test("USAGE has `grace_until` in a grace period only", arguments: SubscriptionState.allCases)
    func graceUntil(state: SubscriptionState) throws {
        var snapshot = Example.paid(used: 5, state: state)
        snapshot.expiresAt = Instant("2026-12-15T12:00:00Z")
        let expected = state == .gracePeriod ? "2026-12-15T12:00:00Z" : nil
        #expect(try #require(FieldLine(line(snapshot.usage(of: user))))["grace_until"] == expected)
        #expect(try #require(FieldLine(line(snapshot.check(1, of: user))))["grace_until"] == nil)
        snapshot.observedAt = Example.december
        #expect(try #require(FieldLine(line(snapshot.usage(of: user))))["grace_until"] == nil, "a period that is over")
    }

    @Test("Only a subscription that is not renewed has `expires`", arguments: SubscriptionState.allCases)
    func expires(state: SubscriptionState) throws {
        var snapshot = Example.paid(used: 5, state: state)
        snapshot.expiresAt = Example.december
        let paid = try #require(FieldLine(line(snapshot.usage(of: user))))
        #expect((paid["expires"] != nil) == [.active, .cancelled, .free].contains(state))
        snapshot.renews = true
        let renewed = try #require(FieldLine(line(snapshot.usage(of: user))))
        #expect((renewed["expires"] != nil) == (state == .cancelled))
        #expect(paid["day"] == nil)
    }

    @Test("An unlimited plan has `limit=unlimited` and no `resets`")
    func unlimited() throws {
        var snapshot = Example.paid(used: 5)
        snapshot.plan = .pro
        snapshot.limit = nil
        let fields = try #require(FieldLine(line(snapshot.consume(1, of: user))))
        #expect(fields["limit"] == "unlimited")
        #expect(fields["remaining"] == "unlimited")
        #expect(fields["resets"] == nil)
    }

    @Test("Without access, and in a past period, nothing resets")
    func noReset() throws {
        var lapsed = Example.paid(used: 5, state: .expired)
        lapsed.denialReason = .expired
        let refused = try #require(FieldLine(line(lapsed.consume(1, of: user))))
        #expect(refused.status == "BLOCKED")
        #expect(refused["resets"] == nil)
        #expect(refused["reason"] == "expired")
        #expect(refused["remaining"] == "0")
        var past = Example.paid(used: 5)
        past.observedAt = Example.december
        let history = try #require(FieldLine(line(past.usage(of: user))))
        #expect(history["resets"] == nil)
        #expect(history["accessible"] == "5 of 800 messages used in 2026-11")
    }

    @Test("USAGE has a reason without access, not for a used up allowance or a past period")
    func reasonOfReading() throws {
        func reason(_ snapshot: UsageSnapshot) throws -> String? {
            try #require(FieldLine(line(snapshot.usage(of: user))))["reason"]
        }
        var snapshot = Example.paid(used: 800)
        #expect(try reason(snapshot) == nil)
        snapshot.denialReason = .revoked
        #expect(try reason(snapshot) == "revoked")
        snapshot.denialReason = nil
        snapshot.plan = Plan(name: "free", label: "Free", cycle: .lifetime, allowance: 0)
        snapshot.limit = 0
        #expect(try reason(snapshot) == "no_subscription")
        snapshot.observedAt = Example.december
        #expect(try reason(snapshot) == nil)
    }

    @Test("The fields of a window stand after remaining, and a client reads them")
    func window() throws {
        var snapshot = Example.paid(used: 9)
        snapshot.window = UsageWindow(limit: 10)
        #expect(line(snapshot.usage(of: user)).contains(" window_limit=10 window_used=0 window_remaining=10 period="))
        snapshot.window = UsageWindow(
            limit: 10,
            openedAt: snapshot.observedAt.advanced(bySeconds: -60),
            endsAt: snapshot.observedAt.advanced(bySeconds: 540)
        )
        (snapshot.windowUsed, snapshot.windowHeld) = (6, 1)
        let encoded = line(snapshot.usage(of: user))
        #expect(encoded.contains(" window_limit=10 window_used=6 window_remaining=3 window_resets="))
        guard case .answer(let answer) = try ReceivedReplyTests.receive(encoded).first else {
            Issue.record("not an answer")
            return
        }
        let endsAt = snapshot.window?.endsAt
        #expect(answer.usage.window == WindowStatus(limit: 10, used: 6, remaining: 3, resets: endsAt))
    }

    @Test("The fields of models and members stand after those of a window, and a client reads them")
    func parts() throws {
        var snapshot = Example.paid(used: 9)
        let limit = PlanLimit(.model, "gpt-5*", allowance: 50, weight: 2, fallback: "gpt-4o-mini")
        var counter = PartCounter()
        (counter.used, counter.held) = (49, 1)
        let fallback = PartUsage.Fallback(model: "gpt-4o-mini", limit: nil, counter: PartCounter())
        snapshot.parts = [
            PartUsage(.model("gpt-5"), limit: limit, counter: counter, fallback: fallback),
            PartUsage(.member(ben), limit: PlanLimit(.member, "*")),
        ]
        let encoded = line(snapshot.check(1, of: user))
        #expect(
            encoded.contains(
                " remaining=791 model=gpt-5 model_limit=50 model_used=49 model_remaining=0 "
                    + "model_resets=2026-12-01T00:00:00Z member=\(ben) member_used=0 period=2026-11 "
            )
        )
        #expect(encoded.contains(" reason=model_limit_reached retry_after=829800 fallback=gpt-4o-mini banner="))
        guard case .answer(let answer) = try ReceivedReplyTests.receive(encoded).first else {
            Issue.record("not an answer")
            return
        }
        let model = ModelUsage(name: "gpt-5", limit: 50, used: 49, remaining: 0, resets: Example.december)
        #expect(answer.usage.model == model)
        #expect(answer.usage.member == MemberUsage(id: ben, used: 0))
        #expect(answer.usage.fallback == "gpt-4o-mini" && answer.status == .blocked(.modelLimitReached))
        snapshot.parts = [PartUsage(.model("gpt-5"), limit: nil)]
        #expect(line(snapshot.usage(of: user)).contains(" remaining=791 model=gpt-5 period="))
    }

    @Test("USAGE has more fields than a message, those that are declared as only of USAGE")
    func fieldsOfUsage() throws {
        var snapshot = Example.paid(used: 640, state: .gracePeriod)
        snapshot.expiresAt = Example.december
        snapshot.renewsAt = Example.december
        snapshot.details = SubscriptionDetails(nextPlan: "pro", price: "9.99", currency: "USD", manage: "https://x.y")
        let names = try [snapshot.usage(of: user), snapshot.check(1, of: user)].map { answer in
            Set(try #require(FieldLine(line(answer))).fields.map(\.name))
        }
        let onlyOfUsage = AnswerField.allCases.filter(\.isOnlyOfUsage).map(\.name)
        #expect(names[0].subtracting(names[1]) == Set(onlyOfUsage))
    }

    @Test("The longest possible answer fits its buffer")
    func longest() throws {
        let word = String(repeating: "\"", count: 3_000)
        let plan = Plan(name: word, label: word, cycle: .trial(days: Int.max), allowance: Int.max)
        var snapshot = UsageSnapshot(
            plan: plan,
            state: .gracePeriod,
            period: BillingPeriod(planNamed: word),
            used: Int.min,
            held: 1,
            limit: Int.max,
            window: UsageWindow(
                limit: Int.max,
                openedAt: Instant(microsecondsSince1970: 0),
                endsAt: Instant(microsecondsSince1970: Int64.max)
            ),
            windowUsed: Int.min,
            denialReason: .trialLimitReached,
            startedAt: Instant(microsecondsSince1970: 0),
            expiresAt: Instant(microsecondsSince1970: Int64.max),
            previousPlan: word,
            observedAt: Instant(microsecondsSince1970: Int64.max / 2),
            renewsAt: Instant(microsecondsSince1970: Int64.max)
        )
        snapshot.details = SubscriptionDetails(nextPlan: word, price: word, currency: word, manage: word)
        var counter = PartCounter()
        (counter.used, counter.windowUsed) = (Int.min, Int.min)
        let longest = try #require(ModelName(String(repeating: "m", count: ModelName.lengthBytes.upperBound)))
        let fallback = PartUsage.Fallback(model: longest, limit: nil, counter: PartCounter())
        snapshot.parts = [
            PartUsage(
                .model(longest),
                limit: PlanLimit(.model, longest.text, allowance: Int.max),
                counter: counter,
                fallback: fallback
            ),
            PartUsage(.member(user), limit: PlanLimit(.member, "*", allowance: Int.max), counter: counter),
        ]
        let answer = Answer(
            user: user,
            status: .blocked(.trialLimitReached),
            snapshot: snapshot,
            crossed: .prominent,
            retryAfterSeconds: Int64.min,
            isDetailed: true
        )
        let fields = try #require(FieldLine(line(answer)))
        #expect(fields["previous_plan"] == word)
        #expect(fields["retry_after"] == String(Int64.min))
    }
}
