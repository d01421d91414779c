import Usage

@testable import Billing

/// What is posted to webhooks and to `POST /v1/billing-events` is refused in words of ours, or kept so that it reads back as
/// the same event: that is what a replay does, months later.
///
/// The input: a byte that chooses who posts, what is posted. Signatures are no part of it, because no input would have a
/// genuine one: what a signature stands before is called as if it were.
enum BillingBody {
    private typealias Attempt<Value> = Result<Value, BillingError>

    /// A word of the dictionary that stands for what a sender must not be told again.
    private static let secret = "s3cret"
    private static let errorBytesMaximum = 1_024
    /// Payments come with what ended them; nothing has more effects than those, and the items of a subscription.
    private static let effectsMaximum = 64

    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = Decisions(input)
        let choice = decisions.below(10)
        let posted = decisions.remainder
        switch choice {
        case 0: try checkEvent(RevenueCatEvent.source, posted, RevenueCatEvent.sanitized)
        case 1, 2:
            try checkEvent(StripeEvent.source, posted) { body throws(BillingError) in
                try StripeEvent.sanitized(body: body, refundRevokes: choice == 1)
            }
        case 3: try checkDirectEvent(posted)
        case 4: try checkEvent(AppStoreNotification.source, posted, keptNotification)
        case 5: try SignedPayloadBody.checkParts(posted)
        case 6: try SignedPayloadBody.checkPosted(posted)
        case 7: try SignedPayloadBody.checkCertificates(posted)
        case 8: try checkJSON(posted)
        default: try checkSignature(posted)
        }
    }

    // MARK: Events

    /// - Parameter keep: from a body to what is kept of it.
    private static func checkEvent(
        _ source: BillingEvent.Source,
        _ body: [UInt8],
        _ keep: ([UInt8]) throws(BillingError) -> JSONValue
    ) throws(Violation) {
        switch attempt({ () throws(BillingError) in try keep(body) }) {
        case .failure(let error):
            try checkRefusal(error)
            try require(!error.description.contains(secret), "an error repeats what was sent: \(error)")
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
        let text = Array(kept.text.utf8)
        let replayed = attempt { () throws(BillingError) in
            try BillingEvent(source: source.rawValue, payload: text)
        }
        try requireEqual(replayed, event, "the event, read again from what is kept")
        guard case .success(let event) = event else { throw Violation(description: "kept and not read: \(event)") }
        try require(event.source == source, "an event of \(event.source) from \(source)")
        try require(!event.id.isEmpty && event.id.unicodeScalars.count <= 255, "the id \(event.id)")
        let identities = event.identities.count
        try require(identities <= 2 * PayloadFields.identitiesMaximum, "\(identities) identities")
        try require(event.effects.count <= effectsMaximum, "\(event.effects.count) effects")
        // Both are what the database is asked with.
        try require(event.customerNames.count <= 1_000, "\(event.customerNames.count) names")
        _ = event.users
    }

    /// The input: the notification, the transaction and the renewal in it, each as JSON, with a zero byte between them.
    private static func keptNotification(_ input: [UInt8]) throws(BillingError) -> JSONValue {
        let texts = input.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false).map(Array.init)
        var parts: [String: PayloadFields] = [:]
        for (name, text) in zip(["signedTransactionInfo", "signedRenewalInfo"], texts.dropFirst()) where !text.isEmpty {
            parts[name] = try PayloadFields(try JSONValue(parsing: text), path: "data.\(name)")
        }
        return try AppStoreNotification.kept(
            of: try PayloadFields(try JSONValue(parsing: texts[0]), path: "signedPayload"),
            parts: parts,
            app: AppStoreVerifier.App(bundleID: "com.example.chat", appleID: nil, environments: .any)
        )
    }

    // MARK: JSON and signatures

    /// What `JSONBody` checks; and what was read, written out and read again, is the same value.
    private static func checkJSON(_ text: [UInt8]) throws(Violation) {
        try JSONBody.check(text)
        let read = attempt { () throws(BillingError) in try JSONValue(parsing: text) }
        switch read {
        case .failure(let error):
            try require(!error.description.contains(secret), "an error repeats what was sent: \(error)")
        case .success(let value):
            let again = attempt { () throws(BillingError) in try JSONValue(parsing: Array(value.text.utf8)) }
            try requireEqual(again, read, "JSON, written and read again")
        }
    }

    /// The input: the value of the header. No input has a signature by the secret.
    private static func checkSignature(_ input: [UInt8]) throws(Violation) {
        let header = String(decoding: input, as: UTF8.self)
        let result = attempt { () throws(BillingError) in
            try stripe.verify(header, body: [], now: Instant(secondsSince1970: 1_795_280_400))
        }
        guard case .failure(let error) = result else { throw Violation(description: "taken for genuine: \(header)") }
        try require(error.kind == .unverified, "refused as \(error)")
        try checkRefusal(error)
    }

    private static let stripe = StripeSignature(secrets: ["whsec_of the fuzzer"], windowSeconds: 300)

    // MARK: Refusals

    static func attempt<Value>(_ read: () throws(BillingError) -> Value) -> Result<Value, BillingError> {
        do throws(BillingError) {
            return .success(try read())
        } catch {
            return .failure(error)
        }
    }

    /// An error goes to the sender, and to the log.
    static func checkRefusal(_ error: BillingError) throws(Violation) {
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
