import JSON
import Usage

@testable import Billing
@testable import StoreEvents

/// Bodies posted to webhooks and to `POST /v1/billing-events` are refused, or stored so that decoding them again yields
/// the same event, as a replay months later does.
///
/// The input: a byte that chooses the sender, the body. The signature check is skipped, because no input would have a
/// valid signature.
enum BillingTarget {
    private typealias Attempt<Value> = Result<Value, BillingError>

    /// A word of the dictionary that errors must not repeat.
    private static let secret = "s3cret"
    private static let errorBytesMaximum = 1_024
    /// Payments have the most effects: each may end the one before it, and has the subscription's items.
    private static let effectsMaximum = 64

    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = FuzzInput(input)
        let choice = decisions.below(10)
        let posted = decisions.remainder
        switch choice {
        case 0:
            try checkEvent(RevenueCatEvent.source, posted) { body throws(BillingError) in
                try RevenueCatEvent.sanitized(body: body)
            }
        case 1, 2:
            try checkEvent(StripeEvent.source, posted) { body throws(BillingError) in
                try StripeEvent.sanitized(body: body, refundRevokes: choice == 1)
            }
        case 3: try checkDirectEvent(posted)
        case 4: try checkEvent(AppStoreNotification.source, posted, keptNotification)
        case 5: try SignedPayloadTarget.checkParts(posted)
        case 6: try SignedPayloadTarget.checkPosted(posted)
        case 7: try SignedPayloadTarget.checkCertificates(posted)
        case 8: try checkJSON(posted)
        default: try checkSignature(posted)
        }
    }

    // MARK: Events

    /// - Parameter keep: makes the stored form of a body.
    private static func checkEvent(
        _ source: BillingEvent.Source,
        _ body: [UInt8],
        _ keep: ([UInt8]) throws(BillingError) -> JSONValue
    ) throws(Violation) {
        switch attempt({ () throws(BillingError) in try keep(body) }) {
        case .failure(let error):
            try checkRefusal(error)
            try require(!error.description.contains(secret), "an error repeats input: \(error)")
        case .success(let kept):
            let event = attempt { () throws(BillingError) in
                guard let adapter = Stores.adapter(of: source) else { throw .malformed("no adapter") }
                return try adapter.translate(payload: kept)
            }
            try checkEvent(event, source, keptAs: kept)
        }
    }

    private static func checkDirectEvent(_ body: [UInt8]) throws(Violation) {
        switch attempt({ () throws(BillingError) in try DirectEvent.parse(body: body) }) {
        case .failure(let error): try checkRefusal(error)
        case .success(let event): try checkEvent(.success(event), event.source, keptAs: event.payload)
        }
    }

    private static func checkEvent(
        _ event: Attempt<BillingEvent>,
        _ source: BillingEvent.Source,
        keptAs kept: JSONValue
    ) throws(Violation) {
        let text = Array(kept.jsonText.utf8)
        let replayed = attempt { () throws(BillingError) in
            try BillingEvent(source: source.rawValue, payload: text)
        }
        try requireEqual(replayed, event, "the event, decoded again from its stored form")
        guard case .success(let event) = event else { throw Violation(description: "stored but not decoded: \(event)") }
        try require(event.source == source, "an event of \(event.source) from \(source)")
        try require(!event.id.isEmpty && event.id.unicodeScalars.count <= 255, "the id \(event.id)")
        let identities = event.identities.count
        try require(identities <= 2 * PayloadFields.identitiesMaximum, "\(identities) identities")
        try require(event.effects.count <= effectsMaximum, "\(event.effects.count) effects")
        // Both are parameters of a statement.
        try require(event.customerNames.count <= 1_000, "\(event.customerNames.count) names")
        _ = event.users
    }

    /// The input: the notification, its transaction and its renewal, each as JSON, separated by a zero byte.
    private static func keptNotification(_ input: [UInt8]) throws(BillingError) -> JSONValue {
        let texts = input.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false).map(Array.init)
        var parts: [String: PayloadFields] = [:]
        for (name, text) in zip(["signedTransactionInfo", "signedRenewalInfo"], texts.dropFirst()) where !text.isEmpty {
            parts[name] = try PayloadFields(try JSONValue(received: text), path: "data.\(name)")
        }
        return try AppStoreNotification.stored(
            of: try PayloadFields(try JSONValue(received: texts[0]), path: "signedPayload"),
            parts: parts,
            app: AppStoreVerifier.App(bundleID: "com.example.chat", appleID: nil, environments: .any)
        )
    }

    // MARK: JSON and signatures

    /// Checks what `JSONTarget` does, and that a parsed value, written and parsed again, is the same.
    private static func checkJSON(_ text: [UInt8]) throws(Violation) {
        try JSONTarget.check(text)
        let read = attempt { () throws(JSONError) in try JSONValue(parsing: text) }
        switch read {
        case .failure(let error):
            try require(!error.description.contains(secret), "an error repeats input: \(error)")
        case .success(let value):
            let again = attempt { () throws(JSONError) in try JSONValue(parsing: Array(value.jsonText.utf8)) }
            try requireEqual(again, read, "JSON, written and parsed again")
        }
    }

    /// The input: the header's value. No input has a valid signature.
    private static func checkSignature(_ input: [UInt8]) throws(Violation) {
        let header = String(decoding: input, as: UTF8.self)
        let result = attempt { () throws(BillingError) in
            try stripe.verify(header, body: [], now: Instant(secondsSince1970: 1_795_280_400))
        }
        guard case .failure(let error) = result else { throw Violation(description: "accepted as valid: \(header)") }
        try require(error.kind == .unverified, "refused as \(error)")
        try checkRefusal(error)
    }

    private static let stripe = StripeVerifier(secrets: ["whsec_of the fuzzer"], windowSeconds: 300)

    // MARK: Refusals

    static func attempt<Value, Failure>(_ read: () throws(Failure) -> Value) -> Result<Value, Failure> {
        do throws(Failure) {
            return .success(try read())
        } catch {
            return .failure(error)
        }
    }

    /// The sender gets the error, and the log.
    static func checkRefusal(_ error: some Error & CustomStringConvertible) throws(Violation) {
        try require(
            (1...errorBytesMaximum).contains(error.description.utf8.count),
            "an error of \(error.description.utf8.count) bytes"
        )
        try require(
            error.description.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) },
            "an error with control characters: \(error)"
        )
    }
}
