import Billing
import StoreEvents
import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The details of a store's subscription")
struct DetailsTests {
    private static let appStore = "https://apps.apple.com/account/subscriptions"
    private static let own = "https://example.org/account?a=%20"
    private let bob = user(2)

    private func fresh() async throws -> TestDatabase { try await .fresh(at: at("2026-11-10T12:00:00Z")) }

    private func report(
        _ database: TestDatabase,
        _ time: String,
        _ kind: BillingEffect.Kind,
        plan: String? = "paid",
        until: String? = "2026-12-05T12:00:00Z",
        _ sale: BillingEffect.Sale? = nil
    ) async throws {
        var effect = BillingEffect(kind, transaction: "T", expires: until.map { at($0) })
        effect.plan = plan
        effect.sale = sale
        let event = BillingEvent(
            source: .revenuecat,
            id: time,
            type: kind.rawValue,
            at: at("2026-11-10T\(time)Z"),
            identities: ["\(ada)"],
            effects: [effect],
            payload: .object([:])
        )
        #expect(try await database.psql.apply(event)["outcome"] == "applied")
    }

    /// By the read path, and by both counting paths beside a message; and from SQL.
    private func details(_ database: TestDatabase, _ engine: EngineHarness) async throws -> SubscriptionDetails? {
        let read = try #require(try await engine.execute(ada, .usage).answer)
        for _ in 0..<2 {
            let requests: [(user: UserID, operation: EngineOperation)] = [(ada, .consume(1)), (ada, .usage)]
            let answers = try await engine.execute(requests).compactMap(\.answer)
            #expect(answers.map(\.details) == [nil, read.details], "beside a message")
        }
        let fields = try await database.usage(ada)
        #expect(fields["price"] == .some(read.details?.price) && fields["currency"] == .some(read.details?.currency))
        #expect(fields["manage"] == .some(read.details?.manage))
        return read.details
    }

    @Test("are the price of the newest payment, and where the subscription is changed")
    func price() async throws {
        try await EngineHarness.serving(fresh(), lanes: 1) { database, engine in
            #expect(try await details(database, engine) == nil, "of a trial of the first message")
            let first = BillingEffect.Sale(store: "app_store", price: "0.99", currency: "USD")
            try await report(database, "08:00:00", .purchased, first)
            var expected = SubscriptionDetails(price: "0.99", currency: "USD", manage: Self.appStore)
            #expect(try await details(database, engine) == expected)
            let second = BillingEffect.Sale(store: "app_store", price: "9.99", currency: "EUR")
            try await report(database, "08:20:00", .renewed, until: "2026-12-20T12:00:00Z", second)
            expected = SubscriptionDetails(price: "9.99", currency: "EUR", manage: Self.appStore)
            #expect(try await details(database, engine) == expected)
            // An earlier renewal that arrives later changes nothing.
            try await report(database, "08:10:00", .renewed, first)
            #expect(try await details(database, engine) == expected)
            for (time, kind) in [("08:30:00", BillingEffect.Kind.cancelled), ("08:40:00", .gracePeriod)] {
                try await report(database, time, kind, plan: nil, until: nil)
                #expect(try await details(database, engine) == expected, "\(kind)")
            }
            _ = try await engine.execute(ada, .setPlan(PlanChange(user: ada, plan: "paid")))
            #expect(try await details(database, engine) == nil, "of a declared plan")
        }
    }

    @Test("have the setting's address unless the subscription comes from the App Store")
    func manage() async throws {
        let database = try await fresh()
        try await database.psql.execute("set headroom.manage_url = '\(Self.own)'")
        let engine = EngineHarness(database.conninfo, lanes: 1, manageURL: Self.own)
        try await engine.running {
            let own = SubscriptionDetails(manage: Self.own)
            #expect(try await details(database, engine) == own, "without a subscription")
            try await report(database, "08:00:00", .purchased, BillingEffect.Sale(store: "play_store"))
            #expect(try await details(database, engine) == own)
            for (time, store) in [("08:10:00", "mac_app_store"), ("08:20:00", "app_store")] {
                try await report(database, time, .renewed, BillingEffect.Sale(store: store))
                #expect(try await details(database, engine)?.manage == Self.appStore)
            }
        }
    }

    @Test("an active plan that nobody renews has an end in every answer")
    func expires() async throws {
        try await EngineHarness.serving(fresh(), lanes: 1) { database, engine in
            let end = at("2026-11-20T12:00:00Z")
            _ = try await engine.execute(bob, .setPlan(PlanChange(user: bob, plan: "paid", expiresAt: end)))
            try await report(
                database,
                "08:00:00",
                .purchased,
                until: "2026-11-20T12:00:00Z",
                BillingEffect.Sale(renews: false)
            )
            for user in [ada, bob] {
                for operation in [EngineOperation.usage, .check(1), .consume(1), .consume(1)] {
                    let answer = try #require(try await engine.execute(user, operation).answer)
                    #expect(answer.snapshot.expiresShown == end && answer.renews == nil)
                }
                #expect(try await database.usage(user)["expires"] == end.text)
                let refused = try #require(try await engine.execute(user, .consume(799)).answer)
                #expect(refused.status == .blocked(.exceedsRemaining) && refused.retryAfterSeconds == nil)
            }
            try await report(database, "08:10:00", .renewed, until: "2026-12-20T12:00:00Z")
            for operation in [EngineOperation.consume(1), .consume(1), .check(1), .usage] {
                let answer = try #require(try await engine.execute(ada, operation).answer)
                #expect(answer.snapshot.expiresShown == nil)
                #expect((answer.renews != nil) == answer.isDetailed)
            }
        }
    }

    @Test("a cancelled trial has its notice in every answer")
    func cancelledTrial() async throws {
        try await EngineHarness.serving(fresh(), lanes: 1) { database, engine in
            try await report(database, "08:00:00", .purchased, plan: "trial", until: "2026-11-13T08:00:00Z")
            for isCancelled in [false, true] {
                if isCancelled { try await report(database, "08:10:00", .cancelled, plan: nil, until: nil) }
                let notice = "Your trial is active until November 13. You can subscribe anytime."
                for operation in [EngineOperation.consume(1), .consume(1), .check(1), .usage] {
                    let answer = try #require(try await engine.execute(ada, operation).answer)
                    #expect(answer.snapshot.notice?.text == (isCancelled ? notice : nil))
                    #expect(answer.snapshot.state == .trial)
                }
            }
        }
    }

    @Test("a refund dated seconds ahead of the clock revokes access at once")
    func ahead() async throws {
        let database = try await fresh()
        try await report(database, "08:00:00", .purchased)
        try await report(database, "12:00:45", .revoked, plan: nil, until: nil)
        #expect(try await database.consume(ada)["reason"] == "revoked")
    }

    @Test("RevenueCat's entitlement premium gives paid from the start, and stays unmapped after it was unmapped")
    func premium() async throws {
        let database = try await fresh()
        var effect = BillingEffect(.purchased, transaction: "T", product: "monthly", expires: at("2026-12-05"))
        effect.entitlements = ["premium"]
        let event = BillingEvent(
            source: .revenuecat,
            id: "first",
            type: "INITIAL_PURCHASE",
            at: at("2026-11-10T08:00:00Z"),
            identities: ["\(ada)"],
            effects: [effect],
            payload: .object([:])
        )
        #expect(try await database.psql.apply(event)["plan"] == "paid")
        try await database.psql.execute("select headroom.unmap_entitlement('revenuecat', 'premium')")
        _ = try await database.psql.run { try Schema.migrate($0) }
        #expect(try await database.psql.number("select count(*) from headroom.store_entitlements") == 0)
    }
}
