import TestSupport
import Testing
import Usage

@testable import Billing

@Suite("Effect resolution")
struct EffectResolutionTests {
    private static let mapping = ProductMapping(
        products: [
            "monthly": ProductMapping.Target(plan: "paid", trialPlan: "trial", introPlan: "pro"),
            "plain": ProductMapping.Target(plan: "paid"),
            "pack": ProductMapping.Target(plan: nil, messages: 100),
            "badge": ProductMapping.Target(plan: nil, messages: 0),
            "huge": ProductMapping.Target(plan: nil, messages: 500_000),
            "pass": ProductMapping.Target(plan: "paid", days: 90),
            "endless": ProductMapping.Target(plan: "unlimited"),
            "small": ProductMapping.Target(plan: "free"),
        ],
        entitlements: [
            "premium": ProductMapping.Target(plan: "pro"),
            "basic": ProductMapping.Target(plan: "paid", trialPlan: "taste"),
        ],
        allowances: ["paid": 800, "free": 20]
    )

    private func resolved(_ effect: BillingEffect) -> Result<BillingEffect, ResolutionFailure> {
        effect.resolved(by: EffectResolutionTests.mapping, at: day("2026-02-01"))
    }

    private func plan(_ effect: BillingEffect) throws -> String? { try resolved(effect).get().plan }

    private func purchase(
        _ product: String?,
        _ period: BillingEffect.Period? = nil,
        entitlements: [String]? = nil
    ) -> BillingEffect {
        var effect = BillingEffect(.purchased, transaction: "T", product: product, period: period)
        effect.entitlements = entitlements
        return effect
    }

    @Test("A product's plan depends on the kind of period")
    func periods() throws {
        #expect(try plan(purchase("monthly")) == "paid")
        #expect(try plan(purchase("monthly", .normal)) == "paid")
        #expect(try plan(purchase("monthly", .intro)) == "pro")
        #expect(try plan(purchase("plain", .intro)) == "paid")
        let trial = try resolved(purchase("monthly", .trial)).get()
        #expect(trial.plan == "trial")
        #expect(trial.regularPlan == "paid")
        #expect(try plan(purchase("plain", .trial)) == "paid")
    }

    @Test("A product without a plan has the plan of its first mapped entitlement")
    func entitlements() throws {
        #expect(try plan(purchase("other", entitlements: ["unknown", "premium", "basic"])) == "pro")
        #expect(try plan(purchase(nil, entitlements: ["basic", "premium"])) == "paid")
        #expect(try plan(purchase("pack", entitlements: ["basic"])) == "paid")
        #expect(try plan(purchase("monthly", entitlements: ["premium"])) == "paid")
        let trial = try resolved(purchase("other", .trial, entitlements: ["basic"])).get()
        #expect(trial.plan == "taste")
        #expect(trial.regularPlan == "paid")
    }

    @Test("A plan named by the event is kept")
    func named() throws {
        var effect = purchase("unknown")
        effect.plan = "free"
        #expect(try resolved(effect).get() == effect)
    }

    @Test("A payment needs its product's plan", arguments: [BillingEffect.Kind.purchased, .renewed, .productChanged])
    func unmapped(kind: BillingEffect.Kind) {
        let effect = BillingEffect(kind, transaction: "T", product: "other")
        #expect(resolved(effect) == .failure(.unmapped("other")))
    }

    @Test(
        "An effect other than a payment needs no plan",
        arguments: [
            BillingEffect.Kind.cancelled, .uncancelled, .gracePeriod, .billingRetry, .expired, .revoked, .reinstated,
            .extended,
        ]
    )
    func unneeded(kind: BillingEffect.Kind) {
        let effect = BillingEffect(kind, transaction: "T", product: "other", expires: day("2026-03-01"))
        #expect(resolved(effect) == .success(effect))
    }

    @Test("Without an end, a cancellation gets no plan, and an expiry or a refund does")
    func ends() throws {
        func plan(_ kind: BillingEffect.Kind, until: String? = nil) throws -> String? {
            try self.plan(BillingEffect(kind, transaction: "T", product: "monthly", expires: until.map(day)))
        }
        #expect(try plan(.cancelled) == nil)
        #expect(try plan(.cancelled, until: "2026-03-01") == "paid")
        #expect(try plan(.expired) == "paid")
        #expect(try plan(.revoked) == "paid")
    }

    @Test("Access before verification lasts 24 hours at most")
    func temporary() throws {
        func expires(_ until: Instant?) throws -> Instant? {
            try resolved(BillingEffect(.temporary, transaction: "T", product: "monthly", expires: until)).get().expires
        }
        #expect(try expires(nil) == day("2026-02-02"))
        #expect(try expires(day("2026-03-01")) == day("2026-02-02"))
        #expect(try expires(at("2026-02-01T06:00:00Z")) == at("2026-02-01T06:00:00Z"))
        let unknown = BillingEffect(.temporary, transaction: "T", product: "other")
        #expect(resolved(unknown) == .failure(.unmapped("other")))
    }

    @Test("A change at the next renewal needs the next product's plan, not the present one's")
    func nextProduct() throws {
        var effect = BillingEffect(.productChanged, transaction: "T", product: "other", nextProduct: "monthly")
        #expect(try resolved(effect).get().nextPlan == "paid")
        #expect(try resolved(effect).get().plan == nil)
        effect.nextProduct = "another"
        #expect(resolved(effect) == .failure(.unmapped("another")))
        effect.nextPlan = "pro"
        #expect(resolved(effect) == .success(effect))
    }

    @Test("A purchase grants its product's messages for each unit")
    func granted() throws {
        func messages(_ product: String, _ quantity: Int?) throws -> Int? {
            try resolved(BillingEffect(.granted, transaction: "G", product: product, quantity: quantity)).get().messages
        }
        #expect(try messages("pack", nil) == 100)
        #expect(try messages("pack", 3) == 300)
        #expect(try messages("badge", 3) == 0)
        #expect(try messages("huge", 2) == 1_000_000)
    }

    @Test("A purchase grants no more than a million messages", arguments: [3, Int.max])
    func grantedTooMuch(quantity: Int) {
        let effect = BillingEffect(.granted, transaction: "G", product: "huge", quantity: quantity)
        #expect(resolved(effect) == .failure(.malformed("a grant has at most 1000000 messages")))
    }

    @Test("A one-time purchase of a product without messages and plan is not mapped")
    func grantedUnmapped() {
        let effect = BillingEffect(.granted, transaction: "G", product: "other")
        #expect(resolved(effect) == .failure(.unmapped("other")))
    }

    @Test("A one-time purchase of a plan lasts as long as the store says, else as the mapping says, else for good")
    func boughtOnce() throws {
        func purchase(_ product: String, until end: String? = nil, entitlement: String? = nil) throws -> BillingEffect {
            var effect = BillingEffect(
                .granted,
                transaction: "G",
                product: product,
                started: day("2026-01-31"),
                expires: end.map(day)
            )
            effect.entitlements = entitlement.map { [$0] }
            return try resolved(effect).get()
        }
        let lifetime = try purchase("plain")
        #expect(lifetime.kind == .purchased && lifetime.plan == "paid")
        #expect(lifetime.sale?.renews == false)
        #expect(lifetime.started == day("2026-01-31") && lifetime.expires == nil)
        #expect(try purchase("plain", until: "2026-03-01").expires == day("2026-03-01"))
        #expect(try purchase("pass").expires == day("2026-05-01"))
        #expect(try purchase("pass", until: "2026-03-01").expires == day("2026-03-01"))
        #expect(try purchase("other", entitlement: "premium").plan == "pro")
        #expect(try purchase("pack", entitlement: "premium").kind == .granted, "a pack stays one")
        let undated = BillingEffect(.granted, transaction: "G", product: "pass")
        #expect(try resolved(undated).get().expires == day("2026-05-02"))
    }

    // MARK: Several items

    private func choice(_ products: [String], _ kinds: [BillingEffect.Kind] = [.renewed]) -> [BillingEffect]? {
        let choices = products.map { product in
            kinds.map { BillingEffect($0, transaction: "T", product: product, expires: day("2026-03-01")) }
        }
        return try? EffectResolutionTests.mapping.resolve(choices, at: day("2026-02-01")).get()
    }

    @Test("Of a subscription's items the mapped one with the largest allowance counts, of equal ones the first")
    func severalItems() {
        #expect(choice(["other", "plain"])?.first?.product == "plain")
        #expect(choice(["small", "plain", "monthly"])?.first?.product == "plain")
        #expect(choice(["plain", "endless", "small"])?.first?.product == "endless")
        #expect(choice(["other", "another"]) == nil)
    }

    @Test("If no item is mapped, the failure names all of them")
    func noItem() {
        let choices = ["one", "two", "one"].map { [BillingEffect(.renewed, transaction: "T", product: $0)] }
        let result = EffectResolutionTests.mapping.resolve(choices, at: day("2026-02-01"))
        #expect(result == .failure(.unmapped("one\ntwo")))
        let text = BillingProblem.unmappedProduct("one\ntwo").text(source: "stripe")
        #expect(text.hasPrefix("none of the products 'one', 'two' of stripe is mapped. Use headroom product map"))
    }

    @Test(
        "What ends access needs no mapping, and does not extend the known plan",
        arguments: [BillingEffect.Kind.expired, .billingRetry, .revoked, .cancelled]
    )
    func ending(kind: BillingEffect.Kind) throws {
        let effects = try #require(choice(["other", "another"], [.renewed, kind]))
        #expect(effects.map(\.kind) == [kind], "nobody knows what was paid")
        #expect(effects[0].product == nil && effects[0].plan == nil)
        #expect(effects[0].expires == (kind == .cancelled ? nil : day("2026-03-01")))
    }

    @Test("A new subscription that is cancelled, and not mapped, fails: nobody would apply its payment later")
    func newAndCancelled() { #expect(choice(["other"], [.purchased, .cancelled]) == nil) }

    @Test("Of several products that were bought once those that are mapped count")
    func severalPurchases() {
        let bought = ["other", "pack"].map { BillingEffect(.granted, transaction: "G", product: $0) }
        let result = EffectResolutionTests.mapping.resolve([bought], at: day("2026-02-01"))
        #expect((try? result.get())?.map(\.messages) == [100])
        let two = ["pack", "huge"].map { BillingEffect(.granted, transaction: "G", product: $0) }
        let both = EffectResolutionTests.mapping.resolve([two], at: day("2026-02-01"))
        #expect((try? both.get())?.map(\.messages) == [500_100], "one payment is one purchase")
    }

    @Test("A number of messages in the event is kept")
    func grantedNamed() {
        var effect = BillingEffect(.granted, transaction: "G", product: "other", quantity: 3)
        effect.messages = 7
        #expect(resolved(effect) == .success(effect))
    }

    @Test("A transfer and an alias have no plans")
    func transfers() {
        let transfer = BillingEffect.transferred(from: ["\(ada)"], to: ["\(ben)"])
        #expect(resolved(transfer) == .success(transfer))
        #expect(resolved(.merged(["\(ada)", "\(ben)"])) == .success(.merged(["\(ada)", "\(ben)"])))
    }
}
