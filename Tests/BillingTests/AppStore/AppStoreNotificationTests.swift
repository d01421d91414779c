import JSON
import Testing
import Usage

@testable import Billing
@testable import StoreEvents

@Suite("A notification of the App Store")
struct AppStoreNotificationTests {
    private typealias Payload = AppStorePayload
    private static let transaction = "2000000000000001"
    private static let product = "com.example.premium"

    private static func payment(
        _ kind: BillingEffect.Kind,
        _ period: BillingEffect.Period = .normal,
        until expires: Instant = Payload.expires
    ) -> BillingEffect {
        BillingEffect(
            kind,
            transaction: transaction,
            product: product,
            period: period,
            started: Payload.purchased,
            expires: expires
        )
    }

    private static func plain(
        _ kind: BillingEffect.Kind,
        until expires: Instant = Payload.expires,
        grace: Instant? = nil
    ) -> BillingEffect {
        BillingEffect(
            kind,
            transaction: transaction,
            product: product,
            period: .normal,
            expires: expires,
            graceUntil: grace
        )
    }

    private static func bare(_ kind: BillingEffect.Kind) -> BillingEffect {
        BillingEffect(kind, transaction: transaction)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var payload: AppStorePayload
        var effects: [BillingEffect]

        init(_ payload: AppStorePayload, _ effects: BillingEffect..., note: String = "") {
            testDescription = "\(payload.outer["notificationType"] ?? .null) \(payload.outer["subtype"] ?? "") \(note)"
            self.payload = payload
            self.effects = effects
        }
    }

    private static func offer(_ type: Int64, _ discount: String?) -> [String: JSONValue] {
        ["offerType": .integer(type), "offerDiscountType": discount.map { .string($0) } ?? .null]
    }

    private static let upgrade = payment(.renewed)
    private static let downgrade = BillingEffect(
        .productChanged,
        transaction: transaction,
        nextProduct: "com.example.basic"
    )
    private static let graceful = ["gracePeriodExpiresDate": JSONValue.integer(Payload.grace.milliseconds)]

    private static let payments: [Row] = [
        Row(Payload("SUBSCRIBED", "INITIAL_BUY"), payment(.purchased)),
        Row(Payload("SUBSCRIBED", "RESUBSCRIBE", status: 1), payment(.purchased)),
        Row(
            Payload("SUBSCRIBED", "INITIAL_BUY").with(transaction: offer(1, "FREE_TRIAL")),
            payment(.purchased, .trial),
            note: "free trial"
        ),
        Row(
            Payload("SUBSCRIBED", "INITIAL_BUY").with(transaction: offer(1, nil)),
            payment(.purchased, .trial),
            note: "introductory offer"
        ),
        Row(
            Payload("SUBSCRIBED", "INITIAL_BUY").with(transaction: offer(1, "PAY_UP_FRONT")),
            payment(.purchased, .intro),
            note: "paid introductory offer"
        ),
        Row(
            Payload("SUBSCRIBED", "RESUBSCRIBE").with(transaction: offer(4, "FREE_TRIAL")),
            payment(.purchased),
            note: "win-back offer"
        ),
        Row(Payload("DID_RENEW", status: 1), payment(.renewed)),
        Row(Payload("DID_RENEW", "BILLING_RECOVERY"), payment(.renewed)),
        Row(Payload("OFFER_REDEEMED"), payment(.renewed)),
        Row(Payload("OFFER_REDEEMED", "INITIAL_BUY"), payment(.purchased)),
        Row(Payload("OFFER_REDEEMED", "UPGRADE"), upgrade),
        Row(Payload("OFFER_REDEEMED", "DOWNGRADE"), downgrade),
        Row(Payload("DID_CHANGE_RENEWAL_PREF", "UPGRADE", status: 1), upgrade),
        Row(Payload("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE"), downgrade),
        Row(Payload("DID_CHANGE_RENEWAL_PREF"), bare(.productChanged)),
        Row(
            Payload("ONE_TIME_CHARGE").with(transaction: ["quantity": .integer(3), "expiresDate": .null]),
            BillingEffect(
                .granted,
                transaction: transaction,
                product: product,
                started: AppStorePayload.purchased,
                quantity: 3
            )
        ),
    ]

    /// Without a status and renewal information.
    private static func oneTimeCharge(_ type: String) -> AppStorePayload {
        var payload = Payload("ONE_TIME_CHARGE").with(
            transaction: ["type": .string(type), "expiresDate": .null, "appTransactionId": "704000000000000001"]
        )
        payload.renewal = nil
        for name in ["webOrderLineItemId", "subscriptionGroupIdentifier"] { payload.transaction?[name] = nil }
        return payload
    }

    private static let oneTimeCharges: [Row] = ["Consumable", "Non-Consumable", "Non-Renewing Subscription"].map {
        let bought = BillingEffect(
            .granted,
            transaction: transaction,
            product: product,
            started: AppStorePayload.purchased,
            quantity: 1
        )
        return Row(oneTimeCharge($0), bought, note: $0)
    }

    /// Fields of monthly payments for a year, of refunds in part, and of the Advanced Commerce API.
    private static let newFields: [Row] = [
        Row(
            Payload("DID_RENEW", status: 1).with(
                transaction: [
                    "billingPlanType": "MONTHLY", "offerPeriod": "P1M",
                    "commitmentInfo": .object(["billingPeriodNumber": .integer(2), "totalBillingPeriods": .integer(12)]
                    ),
                ],
                renewal: ["commitmentInfo": .object(["commitmentAutoRenewStatus": .integer(0)])]
            ),
            payment(.renewed),
            note: "of a commitment for a year"
        ),
        Row(
            Payload("REFUND", status: 5).with(
                transaction: ["revocationType": "REFUND_PRORATED", "revocationPercentage": .integer(50_000)]
            ),
            bare(.revoked),
            note: "in part"
        ),
        Row(
            Payload("SUBSCRIBED", "INITIAL_BUY", status: 1).with(
                transaction: ["advancedCommerceInfo": .object(["items": .array([.object(["SKU": "sku"])])])]
            ),
            payment(.purchased),
            note: "of the Advanced Commerce API"
        ),
    ]

    private static let standings: [Row] = [
        Row(Payload("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", status: 1), plain(.cancelled)),
        Row(Payload("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED", status: 1), plain(.uncancelled)),
        Row(Payload("DID_CHANGE_RENEWAL_STATUS", "A_SUBTYPE_TO_COME")),
        Row(Payload("SUBSCRIBED", "A_SUBTYPE_TO_COME", status: 1)),
        Row(Payload("DID_RENEW", "A_SUBTYPE_TO_COME", status: 1)),
        Row(Payload("REFUND", "A_SUBTYPE_TO_COME", status: 5)),
        Row(
            Payload("DID_FAIL_TO_RENEW", "GRACE_PERIOD").with(renewal: graceful),
            plain(.gracePeriod, grace: Payload.grace)
        ),
        Row(Payload("DID_FAIL_TO_RENEW", "GRACE_PERIOD", status: 4), plain(.gracePeriod), note: "without its end"),
        Row(Payload("DID_FAIL_TO_RENEW", status: 3), plain(.billingRetry)),
        Row(Payload("GRACE_PERIOD_EXPIRED"), plain(.billingRetry)),
        Row(Payload("EXPIRED", "VOLUNTARY", status: 2), plain(.expired)),
        Row(Payload("EXPIRED", "BILLING_RETRY"), plain(.expired)),
        Row(Payload("EXPIRED", "A_SUBTYPE_TO_COME"), plain(.expired)),
        Row(Payload("REFUND", status: 5), bare(.revoked)),
        Row(Payload("REFUND"), bare(.revoked)),
        Row(Payload("REVOKE", status: 5), bare(.revoked)),
        Row(Payload("REFUND_REVERSED", status: 1), bare(.reinstated)),
        Row(
            Payload("RENEWAL_EXTENDED", status: 1),
            BillingEffect(.extended, transaction: transaction, expires: Payload.expires)
        ),
    ]

    /// `data.status` differs from the type.
    private static let disagreements: [Row] = [
        Row(Payload("EXPIRED", "VOLUNTARY", status: 1), payment(.renewed), note: "but active"),
        Row(Payload("EXPIRED", "VOLUNTARY", status: 3), plain(.billingRetry), note: "but in billing retry"),
        Row(Payload("DID_FAIL_TO_RENEW", status: 1), payment(.renewed), note: "but active"),
        Row(
            Payload("DID_FAIL_TO_RENEW", status: 4).with(renewal: graceful),
            plain(.gracePeriod, grace: Payload.grace),
            note: "but in grace"
        ),
        Row(Payload("DID_FAIL_TO_RENEW", "GRACE_PERIOD", status: 3), plain(.billingRetry), note: "but without grace"),
        Row(Payload("GRACE_PERIOD_EXPIRED", status: 5), bare(.revoked), note: "but revoked"),
        Row(
            Payload("SUBSCRIBED", "INITIAL_BUY", status: 2),
            payment(.purchased, until: Payload.at),
            plain(.expired, until: Payload.at),
            note: "but expired"
        ),
        Row(Payload("DID_RENEW", status: 5), payment(.renewed), bare(.revoked), note: "but revoked"),
        Row(
            Payload("DID_RENEW", status: 4).with(renewal: graceful),
            payment(.renewed),
            plain(.gracePeriod, grace: Payload.grace),
            note: "but in grace"
        ),
        Row(Payload("DID_CHANGE_RENEWAL_PREF", "UPGRADE", status: 3), upgrade, plain(.billingRetry), note: "unpaid"),
        Row(
            Payload("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", status: 5),
            plain(.cancelled),
            bare(.revoked),
            note: "but revoked"
        ),
        Row(
            Payload("RENEWAL_EXTENDED", status: 2),
            BillingEffect(.extended, transaction: transaction, expires: Payload.expires),
            note: "but expired"
        ),
        Row(Payload("REFUND", status: 1), note: "of a period long past"),
        Row(Payload("REFUND", status: 4).with(renewal: graceful), plain(.gracePeriod, grace: Payload.grace)),
        Row(Payload("DID_RENEW", status: 99), payment(.renewed), note: "with a status to come"),
    ]

    private static let acknowledged: [Row] =
        [
            "RENEWAL_EXTENSION", "PRICE_INCREASE", "CONSUMPTION_REQUEST", "REFUND_DECLINED", "METADATA_UPDATE",
            "RESCIND_CONSENT", "EXTERNAL_PURCHASE_TOKEN", "PRICE_CHANGE", "TEST", "A_TYPE_TO_COME",
        ].map { Row(Payload($0, status: 1)) }
        + [("MIGRATION", "MIGRATE"), ("PRICE_INCREASE", "PENDING"), ("PRICE_INCREASE", "ACCEPTED")].map {
            Row(Payload($0, $1, status: 1))
        } + [Row(Payload("RENEWAL_EXTENSION", "FAILURE", status: 1))]

    @Test(
        "has the effects in the table; the status takes precedence over the type",
        arguments: payments + oneTimeCharges + newFields + standings + disagreements + acknowledged
    )
    func table(row: Row) async throws {
        let notification = try await row.payload.notification()
        #expect(notification.effects.withoutSales == row.effects)
        #expect(notification.problem == nil)
        #expect(notification.source == .appstore)
        #expect(notification.id == "002e14d5-51f5-4503-b5a8-c3a1af68eb20")
        #expect(notification.at == AppStorePayload.at)
        #expect(notification.identities == [AppStorePayload.user])
        #expect(notification.environment == .production)
    }

    @Test("has a type made of type and subtype")
    func types() async throws {
        let renewed = try await AppStorePayload("DID_RENEW", "BILLING_RECOVERY").notification()
        #expect(renewed.type == "DID_RENEW: BILLING_RECOVERY")
        #expect(renewed.typeClass == "DID_RENEW")
        #expect(try await AppStorePayload("TEST").notification().type == "TEST")
        #expect(try await AppStorePayload("A_TYPE_TO_COME").notification().typeClass == "other")
    }

    @Test("a long type or subtype is cut at 64 characters, and has no effect")
    func longWords() async throws {
        let (long, cut) = (String(repeating: "A", count: 65), String(repeating: "A", count: 64))
        let type = try await AppStorePayload(long, status: 1).notification()
        #expect(type.type == cut && type.effects.isEmpty && type.problem == nil)
        let subtype = try await AppStorePayload("DID_RENEW", long, status: 1).notification()
        #expect(subtype.type == "DID_RENEW: \(cut)" && subtype.effects.isEmpty && subtype.problem == nil)
    }

    @Test("of a type without effects is accepted whatever its fields are")
    func unforeseenFields() async throws {
        var payload = AppStorePayload("A_TYPE_TO_COME")
        payload = payload.with(transaction: ["expiresDate": "soon", "quantity": .object([:])])
        payload.outer["subtype"] = .integer(1)
        payload.outer["summary"] = .array([])
        payload.data?["status"] = "active"
        let event = try await payload.notification()
        #expect(event.type == "A_TYPE_TO_COME" && event.effects.isEmpty && event.problem == nil)
        payload.transaction = nil
        payload.renewal = nil
        payload.data?["signedTransactionInfo"] = .integer(7)
        #expect(try await payload.notification().effects.isEmpty)
        payload.data = nil
        payload.outer["data"] = .array([])
        #expect(try await payload.notification().effects.isEmpty)
    }

    @Test("without a user's token, also with an empty one, belongs to the user of its transaction")
    func emptyToken() async throws {
        for token: JSONValue in ["", .null] {
            let renewal = try await AppStorePayload("DID_RENEW", status: 1).with(
                transaction: ["appAccountToken": token],
                renewal: ["appAccountToken": token]
            ).notification()
            #expect(renewal.identities.isEmpty && renewal.problem == nil)
            #expect(renewal.effects.withoutSales == [AppStoreNotificationTests.payment(.renewed)])
        }
    }

    @Test("of a family member names no user")
    func family() async throws {
        var shared = AppStoreNotificationTests.oneTimeCharge("Non-Consumable")
        for (type, kind) in [("ONE_TIME_CHARGE", BillingEffect.Kind.granted), ("REVOKE", .revoked)] {
            shared.outer["notificationType"] = .string(type)
            shared.transaction?["inAppOwnershipType"] = "FAMILY_SHARED"
            shared.transaction?["appAccountToken"] = nil
            let event = try await shared.notification()
            #expect(event.identities.isEmpty && event.effects.map(\.kind) == [kind] && event.problem == nil)
        }
    }

    @Test("has the environment where the App Store puts it")
    func environments() async throws {
        var inTransaction = AppStorePayload("DID_RENEW", status: 1)
        inTransaction.data?["environment"] = ""
        #expect(try await inTransaction.notification().environment == .production)
        inTransaction = inTransaction.with(transaction: ["environment": .null], renewal: ["environment": .null])
        let error = await #expect(throws: BillingError.self) { try await inTransaction.notification() }
        #expect(error?.kind == .elsewhere)
        var token = AppStorePayload("EXTERNAL_PURCHASE_TOKEN", "UNREPORTED")
        token.data = nil
        for (id, isSandbox) in [("SANDBOX_a", true), ("a", false)] {
            token.outer["externalPurchaseToken"] = .object([
                "bundleId": .string(AppStorePayload.bundleID), "externalPurchaseId": .string(id),
            ])
            if isSandbox {
                let error = await #expect(throws: BillingError.self) { try await token.notification() }
                #expect(error?.kind == .elsewhere)
            } else {
                #expect(try await token.notification().environment == .production)
            }
        }
    }

    @Test("without data, or without a transaction, is accepted")
    func withoutData() async throws {
        var test = AppStorePayload("TEST")
        (test.transaction, test.renewal) = (nil, nil)
        #expect(try await test.notification().effects.isEmpty)
        var summary = AppStorePayload("RENEWAL_EXTENSION", "SUMMARY")
        summary.data = nil
        summary.outer["summary"] = .object([
            "requestIdentifier": "758883e8-151b-47b7-abd0-60c4d804c2f5", "environment": "Production",
            "appAppleId": .integer(6_447_000_001), "bundleId": .string(AppStorePayload.bundleID),
            "productId": "com.example.premium", "storefrontCountryCodes": .array(["USA"]),
            "succeededCount": .integer(5), "failedCount": .integer(0),
        ])
        let extended = try await summary.notification()
        #expect(extended.effects.isEmpty && extended.problem == nil && extended.identities.isEmpty)
        var token = AppStorePayload("EXTERNAL_PURCHASE_TOKEN", "UNREPORTED")
        token.data = nil
        token.outer["externalPurchaseToken"] = .object(["bundleId": .string(AppStorePayload.bundleID)])
        for subtype: JSONValue in ["UNREPORTED", "CREATED", "ACTIVE_TOKEN_REMINDER"] {
            token.outer["subtype"] = subtype
            #expect(try await token.notification().effects.isEmpty)
        }
        var consent = AppStorePayload("RESCIND_CONSENT")
        consent.data = nil
        consent.outer["appData"] = .object([
            "bundleId": .string(AppStorePayload.bundleID), "environment": "Production",
            "signedAppTransactionInfo": "a.b.c",
        ])
        #expect(try await consent.notification().environment == .production)
    }

    @Test("without a required field is stored, with the missing field as its problem")
    func missing() async throws {
        let unbounded = AppStorePayload("DID_RENEW").with(transaction: ["expiresDate": .null])
        #expect(try await unbounded.notification().problem == "DID_RENEW without expiresDate")
        var bare = AppStorePayload("SUBSCRIBED", "INITIAL_BUY")
        bare.transaction = nil
        let purchase = try await bare.notification()
        #expect(purchase.problem == "SUBSCRIBED: INITIAL_BUY without productId")
        #expect(purchase.effects.isEmpty)
        let many = AppStorePayload("ONE_TIME_CHARGE").with(transaction: ["quantity": .integer(1_001)])
        #expect(try await many.notification().problem == "ONE_TIME_CHARGE without a quantity from 1 to 1000")
    }

    @Test("is stored without storefronts, and its stored payload has the same translation")
    func keeping() async throws {
        let first = try await AppStorePayload("DID_RENEW", status: 1).notification()
        let stored = first.payload.jsonText
        for text in ["USA", "143441", "signedTransactionInfo", "eyJ"] {
            #expect(!stored.contains(text), "\(text)")
        }
        #expect(stored.contains("\"2000000000000001\""))
        #expect(try AppStoreNotification.translate(payload: Array(stored.utf8)) == first)
    }
}
