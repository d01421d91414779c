import JSON
import TestSupport
import Testing
import Usage

@testable import Billing
@testable import StoreEvents

@Suite("A RevenueCat event")
struct RevenueCatEventTests {
    private typealias Payload = RevenueCatPayload
    private static let transaction = "123456789012345"
    private static let product = "com.example.premium.monthly"
    private static let grace = at("2027-01-06T16:59:58Z")
    private static let graceField = ["grace_period_expiration_at_ms": JSONValue.integer(grace.milliseconds)]

    private static func payment(_ kind: BillingEffect.Kind, _ period: BillingEffect.Period) -> BillingEffect {
        BillingEffect(
            kind,
            transaction: transaction,
            product: product,
            period: period,
            started: Payload.purchased,
            expires: Payload.expires
        )
    }

    private static func plain(
        _ kind: BillingEffect.Kind,
        period: BillingEffect.Period = .normal,
        graceUntil: Instant? = nil
    ) -> BillingEffect {
        BillingEffect(
            kind,
            transaction: transaction,
            product: product,
            period: period,
            expires: Payload.expires,
            graceUntil: graceUntil
        )
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var payload: RevenueCatPayload
        var effects: [BillingEffect]

        init(_ payload: RevenueCatPayload, _ effects: BillingEffect..., note: String = "") {
            testDescription = "\(payload.event["type"] ?? "") \(payload.event["cancel_reason"] ?? "") \(note)"
            self.payload = payload
            // The payload has an entitlement for each product.
            self.effects = effects.map { effect in
                var effect = effect
                if effect.product != nil || effect.nextProduct != nil { effect.entitlements = ["pro"] }
                return effect
            }
        }
    }

    private static func cancellation(_ reason: String, _ changes: [String: JSONValue] = [:]) -> RevenueCatPayload {
        Payload("CANCELLATION", changes.merging(["cancel_reason": .string(reason)]) { $1 })
    }

    private static let payments: [Row] = [
        Row(Payload("INITIAL_PURCHASE"), payment(.purchased, .normal)),
        Row(Payload("INITIAL_PURCHASE", ["period_type": "TRIAL"]), payment(.purchased, .trial), note: "of a trial"),
        Row(Payload("INITIAL_PURCHASE", ["period_type": "INTRO"]), payment(.purchased, .intro), note: "of an offer"),
        Row(
            Payload("INITIAL_PURCHASE", ["period_type": "PREPAID"]),
            payment(.purchased, .normal),
            note: "of any other period"
        ),
        Row(Payload("RENEWAL"), payment(.renewed, .normal)),
        Row(
            Payload("RENEWAL", ["is_trial_conversion": .bool(true), "period_type": "TRIAL"]),
            payment(.renewed, .normal),
            note: "that ends a trial"
        ),
        Row(
            Payload("NON_RENEWING_PURCHASE", ["expiration_at_ms": .null]),
            BillingEffect(
                .granted,
                transaction: transaction,
                product: product,
                period: .normal,
                started: Payload.purchased
            )
        ),
        Row(
            Payload(
                "NON_RENEWING_PURCHASE",
                [
                    "store": "PROMOTIONAL", "period_type": "PROMOTIONAL", "product_id": "rc_promo_pro_monthly",
                    "price": .integer(0), "price_in_purchased_currency": .integer(0), "currency": .null,
                ],
                without: "app_id"
            ),
            BillingEffect(
                .granted,
                transaction: transaction,
                product: "rc_promo_pro_monthly",
                period: .normal,
                started: Payload.purchased,
                expires: Payload.expires
            ),
            note: "that the dashboard gives away"
        ),
        Row(
            Payload("INITIAL_PURCHASE", without: "original_transaction_id"),
            BillingEffect(
                .purchased,
                transaction: "123456789012346",
                product: product,
                period: .normal,
                started: Payload.purchased,
                expires: Payload.expires
            ),
            note: "without original_transaction_id"
        ),
    ]

    private static let changes: [Row] = [
        Row(cancellation("UNSUBSCRIBE"), plain(.cancelled)),
        Row(cancellation("PRICE_INCREASE"), plain(.cancelled)),
        Row(cancellation("DEVELOPER_INITIATED"), plain(.cancelled)),
        Row(cancellation("UNKNOWN"), plain(.cancelled)),
        Row(cancellation("BOREDOM"), note: "for a reason to come"),
        Row(
            Payload("CANCELLATION", ["cancel_reason": "UNSUBSCRIBE", "period_type": "TRIAL"]),
            plain(.cancelled, period: .trial),
            note: "of a trial"
        ),
        Row(Payload("CANCELLATION"), plain(.cancelled), note: "without a reason"),
        Row(cancellation("BILLING_ERROR", graceField), plain(.gracePeriod, graceUntil: grace), note: "with grace"),
        Row(
            cancellation("BILLING_ERROR", ["grace_period_expiration_at_ms": .null]),
            plain(.billingRetry),
            note: "without grace"
        ),
        Row(cancellation("BILLING_ERROR"), plain(.gracePeriod), note: "without a grace field"),
        Row(Payload("BILLING_ISSUE", graceField), plain(.gracePeriod, graceUntil: grace), note: "with grace"),
        Row(
            Payload("BILLING_ISSUE", ["grace_period_expiration_at_ms": .null]),
            plain(.billingRetry),
            note: "without grace"
        ),
        Row(Payload("BILLING_ISSUE"), plain(.billingRetry), note: "that leaves grace out"),
        Row(cancellation("CUSTOMER_SUPPORT"), BillingEffect(.revoked, transaction: transaction)),
        Row(Payload("UNCANCELLATION"), plain(.uncancelled)),
        Row(Payload("EXPIRATION", ["expiration_reason": "UNSUBSCRIBE"]), plain(.expired)),
        Row(
            Payload("EXPIRATION", ["expiration_reason": "SUBSCRIPTION_PAUSED", "store": "PLAY_STORE"]),
            plain(.expired),
            note: "of a pause"
        ),
        Row(Payload("SUBSCRIPTION_PAUSED", ["auto_resume_at_ms": .integer(1_800_000_000_000)])),
        Row(
            Payload("PRODUCT_CHANGE", ["new_product_id": "com.example.pro.monthly"]),
            BillingEffect(.productChanged, transaction: transaction, nextProduct: "com.example.pro.monthly")
        ),
        Row(Payload("PRODUCT_CHANGE"), note: "that was made at once"),
        Row(
            Payload("SUBSCRIPTION_EXTENDED"),
            BillingEffect(.extended, transaction: transaction, expires: Payload.expires)
        ),
        Row(Payload("REFUND_REVERSED"), BillingEffect(.reinstated, transaction: transaction)),
    ]

    private static let temporary: [Row] = [
        Row(
            Payload("TEMPORARY_ENTITLEMENT_GRANT", ["expiration_at_ms": .integer(Payload.at.milliseconds + 3_600_000)]),
            BillingEffect(
                .temporary,
                transaction: transaction,
                product: product,
                expires: Payload.at.advanced(bySeconds: 3_600)
            ),
            note: "that ends soon"
        ),
        Row(
            Payload("TEMPORARY_ENTITLEMENT_GRANT"),
            BillingEffect(
                .temporary,
                transaction: transaction,
                product: product,
                expires: Payload.at.advanced(bySeconds: 86_400)
            ),
            note: "that would last for a month"
        ),
        Row(
            Payload(
                "TEMPORARY_ENTITLEMENT_GRANT",
                without: "expiration_at_ms",
                "transaction_id",
                "original_transaction_id",
                "environment",
                "aliases"
            ),
            BillingEffect(
                .temporary,
                transaction: "temporary 12345678-1234-1234-1234-123456789012",
                product: product,
                expires: Payload.at.advanced(bySeconds: 86_400)
            ),
            note: "with few fields"
        ),
    ]

    private static let acknowledged: [Row] =
        [
            "TEST", "INVOICE_ISSUANCE", "VIRTUAL_CURRENCY_TRANSACTION", "EXPERIMENT_ENROLLMENT", "A_TYPE_TO_COME",
            "renewal",
        ].map { Row(Payload($0)) } + [
            Row(
                Payload(
                    "VIRTUAL_CURRENCY_TRANSACTION",
                    [
                        "adjustments": .array([
                            .object(["amount": .integer(100), "currency": .object(["code": "CRD"])])
                        ]),
                        "purchase_environment": "PRODUCTION", "source": "in_app_purchase",
                        "virtual_currency_transaction_id": "vatx1",
                    ],
                    without: "environment",
                    "period_type",
                    "purchased_at_ms",
                    "expiration_at_ms"
                ),
                note: "with its own fields"
            ),
            Row(
                Payload(
                    "INVOICE_ISSUANCE",
                    [
                        "store": "RC_BILLING", "period_type": .null, "expiration_at_ms": .null, "transaction_id": .null,
                        "original_transaction_id": .null, "entitlement_ids": .null, "renewal_number": .null,
                    ]
                ),
                note: "before its payment"
            ),
        ]

    @Test("has the effects in the table", arguments: payments + changes + temporary + acknowledged)
    func table(row: Row) throws {
        let notification = try row.payload.notification()
        #expect(notification.effects.withoutSales == row.effects)
        #expect(notification.problem == nil)
        #expect(notification.at == RevenueCatPayload.at)
        #expect(notification.source == .revenuecat)
        #expect(notification.id == "12345678-1234-1234-1234-123456789012")
        #expect(notification.identities.first == RevenueCatPayload.user)
    }

    @Test("has a type made of type and reason")
    func types() throws {
        #expect(try RevenueCatPayload("RENEWAL").notification().type == "RENEWAL")
        #expect(
            try RevenueCatEventTests.cancellation("UNSUBSCRIBE").notification().type == "CANCELLATION: UNSUBSCRIBE"
        )
        #expect(try RevenueCatEventTests.cancellation("UNSUBSCRIBE").notification().typeClass == "CANCELLATION")
        #expect(try RevenueCatPayload("A_TYPE_TO_COME").notification().typeClass == "other")
        let expiration = RevenueCatPayload("EXPIRATION", ["expiration_reason": "BILLING_ERROR"])
        #expect(try expiration.notification().type == "EXPIRATION: BILLING_ERROR")
    }

    @Test("a transfer needs no customer of its own")
    func transfer() throws {
        let other = "0A0B0C0D-0000-4000-8000-000000000001"
        let payload = RevenueCatPayload(
            "TRANSFER",
            ["transferred_from": .array([.string(other)]), "transferred_to": .array([.string("ann@example.com")])],
            without: "app_user_id",
            "aliases",
            "original_app_user_id",
            "environment",
            "product_id",
            "transaction_id",
            "original_transaction_id",
            "expiration_at_ms",
            "purchased_at_ms",
            "period_type"
        )
        let notification = try payload.notification()
        let to = CustomerIdentity.stored("ann@example.com")
        #expect(notification.effects == [.transferred(from: [other.lowercased()], to: [to])])
        #expect(notification.identities == [to])
        #expect(notification.environment == .production)
    }

    @Test("an event with aliases merges them")
    func aliases() throws {
        let notification = try RevenueCatPayload("SUBSCRIBER_ALIAS").notification()
        #expect(notification.identities.count == 3)
        #expect(notification.effects == [.merged(notification.identities)])
        let alone = RevenueCatPayload("SUBSCRIBER_ALIAS", without: "aliases", "original_app_user_id")
        #expect(try alone.notification().effects.isEmpty)
    }

    @Test("identifies its customer by app_user_id, original_app_user_id and aliases, in this order and each once")
    func identities() throws {
        let second = "0A0B0C0D-0000-4000-8000-000000000001"
        let payload = RevenueCatPayload(
            "RENEWAL",
            [
                "original_app_user_id": .string("ann@example.com"),
                "aliases": .array([.string(RevenueCatPayload.user), .string(second), .string("ann@example.com")]),
            ]
        )
        // printf %s ann@example.com | sha256sum
        let digest = "sha256:71d4f55f72fa128dfb468a1a3901507c804b74316488744d769d7f4b16696476"
        #expect(try payload.notification().identities == [RevenueCatPayload.user, digest, second.lowercased()])
    }

    @Test("an event of the sandbox, or of an unknown environment, is a sandbox event")
    func environments() throws {
        #expect(try RevenueCatPayload("TEST").notification().environment == .production)
        for word in ["SANDBOX", "STAGING", String(repeating: "PRODUCTION", count: 10)] {
            let notification = try RevenueCatPayload("TEST", ["environment": .string(word)]).notification()
            #expect(notification.environment == .sandbox)
        }
        let currency = RevenueCatPayload(
            "VIRTUAL_CURRENCY_TRANSACTION",
            ["purchase_environment": "SANDBOX"],
            without: "environment"
        )
        #expect(try currency.notification().environment == .sandbox)
    }

    @Test("an event without an environment is of production only if its type never names one")
    func unnamedEnvironment() throws {
        for (type, environment, isAccepted): (String, BillingEvent.Environment?, Bool) in [
            ("INITIAL_PURCHASE", nil, false), ("NON_RENEWING_PURCHASE", nil, false),
            ("SUBSCRIBER_ALIAS", .production, true), ("TEMPORARY_ENTITLEMENT_GRANT", .production, true),
            ("A_TYPE_TO_COME", .production, true),
        ] {
            let event = try RevenueCatPayload(type, ["environment": ""]).notification()
            #expect(event.environment == environment, "\(type)")
            for environments in [AcceptedEnvironments.production, .sandbox] {
                let check = { try RevenueCatEvent.check(event, environments: environments) }
                if isAccepted { try check() } else { #expect(throws: BillingError.self, "\(type)") { try check() } }
            }
        }
    }

    @Test("a long type or reason is cut at 64 characters, and has no effect")
    func longWords() throws {
        let long = String(repeating: "é", count: 300)
        let cut = String(repeating: "é", count: 64)
        let type = try RevenueCatPayload(long).notification()
        #expect(type.type == cut && type.effects.isEmpty && type.problem == nil)
        let reason = try RevenueCatEventTests.cancellation(long).notification()
        #expect(reason.type == "CANCELLATION: \(cut)" && reason.effects.isEmpty && reason.problem == nil)
        #expect(reason.typeClass == "CANCELLATION")
    }

    @Test("an event of a type without effects is accepted whatever its fields are")
    func unforeseenFields() throws {
        for type in ["A_TYPE_TO_COME", "SUBSCRIPTION_PAUSED", "VIRTUAL_CURRENCY_TRANSACTION"] {
            let payload = RevenueCatPayload(
                type,
                [
                    "expiration_at_ms": "soon", "product_id": .object([:]), "aliases": .object(["a": "b"]),
                    "cancel_reason": .array([]), "environment": .integer(1), "is_trial_conversion": "no",
                ]
            )
            let event = try payload.notification()
            #expect(event.effects.isEmpty && event.problem == nil && event.type == type)
            #expect(event.identities.first == RevenueCatPayload.user)
        }
    }

    @Test("a field that is an empty text is absent")
    func emptyTexts() throws {
        let payload = RevenueCatPayload(
            "RENEWAL",
            ["app_user_id": "", "original_transaction_id": "", "cancel_reason": "", "period_type": ""]
        )
        let event = try payload.notification()
        #expect(event.type == "RENEWAL" && event.problem == nil)
        #expect(event.effects.first?.transaction == "123456789012346")
        let bare = RevenueCatPayload("RENEWAL", ["product_id": ""])
        #expect(try bare.notification().problem == "RENEWAL without product_id")
    }

    @Test(
        "without a required field is stored, with the missing field as its problem",
        arguments: [
            ("INITIAL_PURCHASE", ["product_id"], "INITIAL_PURCHASE without product_id"),
            ("RENEWAL", ["expiration_at_ms"], "RENEWAL without expiration_at_ms"),
            ("SUBSCRIPTION_EXTENDED", ["expiration_at_ms"], "SUBSCRIPTION_EXTENDED without expiration_at_ms"),
            (
                "UNCANCELLATION", ["original_transaction_id", "transaction_id"],
                "UNCANCELLATION without original_transaction_id"
            ),
            ("NON_RENEWING_PURCHASE", ["product_id"], "NON_RENEWING_PURCHASE without product_id"),
            ("TEMPORARY_ENTITLEMENT_GRANT", ["product_id"], "TEMPORARY_ENTITLEMENT_GRANT without product_id"),
            ("TRANSFER", [], "TRANSFER without transferred_from"),
        ] as [(String, [String], String)]
    )
    func missing(type: String, names: [String], problem: String) throws {
        var payload = RevenueCatPayload(type)
        for name in names { payload.event[name] = nil }
        let notification = try payload.notification()
        #expect(notification.problem == problem)
        #expect(notification.effects.isEmpty)
    }
}
