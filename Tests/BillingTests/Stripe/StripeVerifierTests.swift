import Billing
import Crypto
import StoreEvents
import TestSupport
import Testing
import Usage

@Suite("The Stripe verifier")
struct StripeVerifierTests {
    private static let now = at("2026-11-21T17:00:00.900Z")
    private static let body = Array(#"{"id":"evt_1"}"#.utf8)
    private static let rolled = StripeVerifier(secrets: ["whsec_one", "whsec_two"], windowSeconds: 300)

    private func isAccepted(_ header: String?, body: [UInt8] = StripeVerifierTests.body) -> Bool {
        do {
            try Self.rolled.verify(header, body: body, now: Self.now)
            return true
        } catch {
            #expect(error.kind == .unverified)
            #expect(!error.description.contains("whsec"))
            return false
        }
    }

    private func code(_ secret: String, _ time: Int64, _ body: [UInt8] = StripeVerifierTests.body) -> String {
        let signed = Array("\(time).".utf8) + body
        return HMAC<SHA256>.authenticationCode(for: signed, using: SymmetricKey(data: Array(secret.utf8))).map {
            ($0 < 16 ? "0" : "") + String($0, radix: 16)
        }.joined()
    }

    @Test("accepts a signature with any of the secrets")
    func good() {
        let time = Self.now.secondsSince1970
        let (one, two, other) = (code("whsec_one", time), code("whsec_two", time), code("whsec_three", time))
        for header in [
            "t=\(time),v1=\(one)", "t=\(time),v1=\(two)", "t=\(time),v1=\(other),v1=\(two)",
            "t=\(time),v1=\(one),v0=\(other)", "t=\(time),v0=\(other),v1=\(one)", "v1=\(one),t=\(time)",
        ] { #expect(isAccepted(header), "\(header)") }
    }

    @Test("rejects any other secret, body, time, scheme or form")
    func bad() {
        let time = Self.now.secondsSince1970
        let (one, other) = (code("whsec_one", time), code("whsec_three", time))
        for header in [
            nil, "", "t=\(time)", "v1=\(one)", "t=\(time),v1=\(other)", "t=\(time),v0=\(one)",
            "t=\(time - 1),v1=\(one)",
            "t=\(time),v1=", "t=\(time),v1=\(one.dropLast())", "t=\(time),v1=\(one)00", "t=,v1=\(one)",
            "t=\(time),t=\(time),v1=\(one)", "t=x,v1=\(one)", "t=\(time);v1=\(one)", "\(time),\(one)", "t=\(time),v1",
        ] { #expect(!isAccepted(header), "\(header ?? "none")") }
        #expect(!isAccepted("t=\(time),v1=\(one)", body: Self.body + [0x20]))
        #expect(!isAccepted("t=\(time),v1=\(one)", body: []))
    }

    @Test("rejects a signature outside the time window, in either direction")
    func window() {
        let now = Self.now.secondsSince1970
        for (time, isGood) in [
            (now - 300, true), (now + 300, true), (now - 301, false), (now + 301, false), (0, false),
        ] {
            #expect(isAccepted("t=\(time),v1=\(code("whsec_one", time))") == isGood, "\(time - now)")
        }
    }
}
