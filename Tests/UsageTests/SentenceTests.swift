import TestSupport
import Testing

@testable import Usage

@Suite("Sentences")
struct WordsTests {
    /// What the golden table does not have. The allowance is never renewed, so there is no month and no date.
    @Test(
        "tell the remaining messages of a plan that never resets",
        arguments: [
            (.lifetime(used: 0, limit: 10), "0 of 10 messages used"), (.lifetime(used: 1, limit: nil), nil),
            (.lifetime(used: 8, limit: 10), "You have 2 conversations left"),
            (.lifetime(used: 19, limit: 20), "Almost there — 1 message left"),
            (.lifetime(used: 95, limit: 100), "Almost there — 5 messages left"),
        ] as [(UsageSnapshot, String?)]
    )
    func banner(snapshot: UsageSnapshot, banner: String?) { #expect(snapshot.banner?.text == banner) }

    @Test("tell the wait for the end of a day, the day on which a week ends in the plan's time zone, never the month")
    func localDates() {
        func texts(
            _ cycle: Plan.Cycle,
            _ period: String,
            used: Int,
            limit: Int? = 20,
            until expires: String? = nil
        ) -> [String?] {
            let snapshot = UsageSnapshot(
                plan: Plan(name: "local", label: "Local", cycle: cycle, timeZone: "Asia/Tokyo", allowance: limit),
                state: .active,
                period: billingPeriod(period),
                used: used,
                limit: limit,
                startedAt: at("2026-11-21T15:00:00Z"),
                // Midnight in Tokyo, where it is a day later than in UTC.
                resetsAt: at("2026-11-22T15:00:00Z"),
                expiresAt: expires.map(at),
                observedAt: at("2026-11-22T12:00:00Z")
            )
            return [snapshot.banner?.text, snapshot.accessible.text]
        }
        for (cycle, period, left, refreshes, accessible) in [
            (
                Plan.Cycle.daily, "2026-11-22", "for the next 3 hours", "in 3 hours",
                "messages used; the next period begins in 3 hours"
            ),
            (
                .weekly, "2026-W47", "until November 23", "on November 23",
                "messages used in the period until November 23"
            ),
        ] {
            #expect(texts(cycle, period, used: 15) == [nil, "15 of 20 \(accessible)"])
            let gentle = texts(cycle, period, used: 16)
            #expect(gentle == ["You have 4 conversations left \(left)", "16 of 20 \(accessible)"])
            #expect(texts(cycle, period, used: 19)[0] == "Almost there — 1 message left \(left)")
            #expect(
                texts(cycle, period, used: 20)[0]
                    == "We've had a lot of great conversations! Your next session refreshes \(refreshes)."
            )
            #expect(texts(cycle, period, used: 4, limit: 5)[0] == "You have 1 conversation left \(left)")
            #expect(texts(cycle, period, used: 2, limit: nil) == [nil, "2 \(accessible)"])
            let one = accessible.replacing("messages", with: "message")
            #expect(texts(cycle, period, used: 1, limit: nil)[1] == "1 \(one)")
        }
        let expires = "2026-11-22T15:00:00Z"
        #expect(texts(.daily, "2026-11-22", used: 16, until: expires)[0] == "You have 4 conversations left")
        #expect(texts(.daily, "2026-11-22", used: 19, until: expires)[0] == "Almost there — 1 message left")
        #expect(texts(.daily, "2026-11-22", used: 20, until: expires)[0] == "We've had a lot of great conversations!")
    }

    @Test("say this month only of a month of the calendar")
    func anchoredMonth() {
        func texts(used: Int, until expires: String? = nil, denied: DenialReason? = nil) -> [String?] {
            let snapshot = UsageSnapshot(
                plan: .paid,
                state: denied == nil ? .active : .expired,
                period: billingPeriod("2026-11"),
                used: used,
                limit: 800,
                denialReason: denied,
                startedAt: at("2026-11-15"),
                resetsAt: at("2026-12-15"),
                expiresAt: expires.map(at),
                observedAt: at("2026-11-20")
            )
            return [snapshot.banner?.text, snapshot.accessible.text]
        }
        let accessible = "messages used in the period until December 15"
        #expect(texts(used: 640) == ["You have 160 conversations left until December 15", "640 of 800 \(accessible)"])
        #expect(texts(used: 799)[0] == "Almost there — 1 message left until December 15")
        #expect(
            texts(used: 800)[0]
                == "We've had a lot of great conversations! Your next session refreshes on December 15."
        )
        #expect(texts(used: 640, until: "2026-12-01")[0] == "You have 160 conversations left")
        #expect(texts(used: 800, until: "2026-12-01")[0] == "We've had a lot of great conversations!")
        #expect(texts(used: 0, until: "2026-11-15", denied: .expired)[1] == "0 of 800 messages used")
    }

    @Test("invite new users to begin, and previous subscribers to come back")
    func neverSubscribed() {
        let begin = "Ready to begin? A subscription opens our conversations."
        for var snapshot in [
            UsageSnapshot.lifetime(used: 0, limit: 0), .lifetime(used: 0, limit: 10, denialReason: .noSubscription),
        ] {
            #expect(snapshot.banner?.text == begin)
            snapshot.previousPlan = "paid"
            #expect(snapshot.banner?.text == "Ready to come back? Your conversations are still here.")
        }
    }

    @Test(
        "describe the state of the subscription",
        arguments: [
            (.cancelled, "Your subscription is active until November 20. You can resubscribe anytime."),
            (
                .gracePeriod,
                "There's a hiccup with your payment. Let's get that sorted. Your access stays until November 20."
            ),
            (
                .billingRetry,
                "I couldn't renew your subscription. Update your payment method and we can go on right away."
            ),
            (.active, nil), (.expired, nil), (.revoked, nil), (.trial, nil), (.free, nil),
        ] as [(SubscriptionState, String?)]
    )
    func notice(state: SubscriptionState, notice: String?) {
        let snapshot = UsageSnapshot.monthly(used: 1, state: state, expiresAt: at("2026-11-20T08:00:00Z"))
        #expect(snapshot.notice?.text == notice)
    }

    @Test("are left out if a value for a placeholder is missing")
    func cancelledWithoutDate() {
        #expect(UsageSnapshot.monthly(used: 1, state: .cancelled).notice == nil)
        #expect(
            UsageSnapshot.monthly(used: 1, state: .gracePeriod).notice?.text
                == "There's a hiccup with your payment. Let's get that sorted."
        )
    }

    @Test("tell a user who cancelled a trial until when it lasts")
    func cancelledTrial() {
        var trial = UsageSnapshot.trial(used: 3)
        for renews in [nil, true] {
            trial.renews = renews
            #expect(trial.notice == nil)
        }
        trial.renews = false
        #expect(trial.notice?.text == "Your trial is active until November 13. You can subscribe anytime.")
        trial.denialReason = .trialEnded
        #expect(trial.notice == nil)
    }

    @Test(
        "name the state, and say what to do about a billing issue",
        arguments: [
            (.trial, "Trial"), (.active, "Active"), (.cancelled, "Cancelled"), (.gracePeriod, "Billing issue"),
            (.billingRetry, "Billing issue"), (.expired, "Expired"), (.revoked, "Refunded"), (.free, "Free"),
        ] as [(SubscriptionState, String)]
    )
    func stateLabel(state: SubscriptionState, label: String) {
        var snapshot = UsageSnapshot.monthly(used: 1, state: state)
        #expect(snapshot.stateLabel.text == label)
        let steps = "Open your subscription settings, check the payment method, then come back — I'll be right here."
        #expect(snapshot.steps?.text == (label == "Billing issue" ? steps : nil))
        snapshot.observedAt = at("2026-12-01")
        #expect(snapshot.stateLabel.text == label && snapshot.steps == nil)
    }

    @Test("are left out for a past period")
    func past() {
        var snapshot = UsageSnapshot.monthly(used: 800, state: .gracePeriod, observedAt: at("2026-12-01").justBefore)
        #expect(snapshot.banner != nil)
        #expect(snapshot.notice != nil)
        snapshot.observedAt = at("2026-12-01")
        #expect(snapshot.isPast)
        #expect(snapshot.banner == nil)
        #expect(snapshot.notice == nil)
    }

    @Test(
        "describe the usage for screen readers",
        arguments: [
            (UsageSnapshot.monthly(used: 160), "160 of 800 messages used this month"),
            (.monthly(used: 160, limit: nil, plan: .pro), "160 messages used this month"),
            (.trial(used: 41), "41 of 100 trial messages used"),
            (.monthly(used: 1), "1 of 800 messages used this month"),
            (.monthly(used: 1, limit: nil, plan: .pro), "1 message used this month"),
            (.lifetime(used: 1, limit: 3), "1 of 3 messages used"),
            (.lifetime(used: 1, limit: nil), "1 message used"),
            (.lifetime(used: 2, limit: nil), "2 messages used"),
            (.monthly(used: 160, observedAt: at("2026-12-01")), "160 of 800 messages used in 2026-11"),
            (.monthly(used: 160, limit: nil, plan: .pro, observedAt: at("2026-12-01")), "160 messages used in 2026-11"),
            (.monthly(used: 1, limit: nil, plan: .pro, observedAt: at("2026-12-01")), "1 message used in 2026-11"),
        ]
    )
    func accessible(snapshot: UsageSnapshot, sentence: String) { #expect(snapshot.accessible.text == sentence) }

    @Test(
        "contain the plan, and the day of a trial",
        arguments: [
            (UsageSnapshot.monthly(used: 0), "Premium"),
            (.monthly(used: 0, limit: nil, plan: .pro), "Pro"),
            (.lifetime(used: 0, limit: 0), "Free"),
            (.trial(used: 0, observedAt: at("2026-11-10T09:30:00Z")), "Trial — Day 1 of 3"),
            (.trial(used: 0, observedAt: at("2026-11-11T09:30:00Z").justBefore), "Trial — Day 1 of 3"),
            (.trial(used: 0, observedAt: at("2026-11-11T09:30:00Z")), "Trial — Day 2 of 3"),
            (.trial(used: 0, observedAt: at("2026-11-12T09:30:00Z")), "Trial — Day 3 of 3"),
            (.trial(used: 0, observedAt: at("2026-11-30T09:30:00Z")), "Trial — Day 3 of 3"),
            (.trial(used: 0, observedAt: at("2026-11-09T09:30:00Z")), "Trial — Day 1 of 3"),
        ]
    )
    func label(snapshot: UsageSnapshot, label: String) { #expect(snapshot.label == label) }

    @Test("promise the user nothing when the usage cannot be read, and reassure when the message is let through")
    func unreadable() {
        #expect(Phrase(.unreadable).text == "I couldn't check your usage right now. Let's try again in a moment.")
        #expect(
            Phrase(.uncounted).text
                == "I couldn't check your usage right now — don't worry, you can keep chatting."
        )
    }

    /// Those that are sentences, not words of sentences.
    private static let whole = Sentence.allCases.filter { sentence in
        !sentence.blanks.contains { [.month, .year, .n, .larger].contains($0) }
    }

    @Test("have values for all blanks of all templates", arguments: whole)
    func blanks(sentence: Sentence) throws {
        let forms = try #require(ShippedWords.english[sentence])
        for number in [1, 2, 98, 99] {
            var values = Phrase.Values()
            let limit = sentence.numberBlank == .limit ? number : 100
            values.allowance = Allowance(used: sentence.numberBlank == .limit ? 0 : number, limit: limit)
            values.date = RelativeDate(at("2026-12-01").date)
            values.requested = 150
            (values.day, values.days) = (2, 3)
            values.waitSeconds = 7_741
            values.entitlement = UsageSnapshot.monthly(used: number).entitlement
            (values.banner, values.fallback) = ("That was it.", "Small")
            let isAboutOne = sentence.numberBlank == .remaining ? number == 99 : number == 1
            let template = isAboutOne ? forms.one ?? forms.other : forms.other
            let expected = [
                "used": "\(number)", "remaining": "\(100 - number)", "limit": "\(limit)", "requested": "150",
                "date": "December 1", "day": "2", "days": "3", "label": "Premium", "period": "2026-11",
                "wait": "2 hours 10 minutes", "banner": "That was it.", "fallback": "Small",
            ].reduce(template) { $0.replacing("{\($1.key)}", with: $1.value) }
            #expect(Phrase(sentence, values).text == expected && !expected.contains("{"))
        }
    }
}
