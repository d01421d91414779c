import Billing
import Crypto
import StoreEvents
import TestSupport
import Testing
import Usage

@Suite("The RevenueCat verifier")
struct RevenueCatVerifierTests {
    private static let now = at("2026-11-21T17:00:00.900Z")
    private static let body = Array(#"{"event":{"id":"E1"}}"#.utf8)

    private func isAccepted(
        _ verifier: RevenueCatVerifier,
        authorization: String? = nil,
        signature: String? = nil,
        body: [UInt8] = RevenueCatVerifierTests.body
    ) -> Bool {
        do {
            try verifier.verify(authorization: authorization, signature: signature, body: body, now: Self.now)
            return true
        } catch {
            #expect(error.kind == .unverified)
            #expect(!error.description.contains("secret one"))
            return false
        }
    }

    private func code(_ secret: String, _ time: Int64, _ body: [UInt8] = RevenueCatVerifierTests.body) -> String {
        let signed = Array("\(time).".utf8) + body
        return HMAC<SHA256>.authenticationCode(for: signed, using: SymmetricKey(data: Array(secret.utf8))).map {
            ($0 < 16 ? "0" : "") + String($0, radix: 16)
        }.joined()
    }

    @Test("accepts any configured authorization, also with Bearer before it")
    func authorizations() {
        let verifier = RevenueCatVerifier(
            authorizations: ["secret one", "Bearer secret two"],
            signingSecrets: [],
            windowSeconds: 300
        )
        for good in ["secret one", "Bearer secret one", "Bearer secret two", "Bearer Bearer secret two"] {
            #expect(isAccepted(verifier, authorization: good), "\(good)")
        }
        let bad = [
            nil, "", "secret", "secret one ", " secret one", "Secret one", "bearer secret one", "secret two",
            "Bearer", "secret oneBearer secret two", "secret one,Bearer secret two",
        ]
        for bad in bad { #expect(!isAccepted(verifier, authorization: bad), "\(bad ?? "none")") }
    }

    @Test("accepts a signature with any of the secrets")
    func signatures() {
        let verifier = RevenueCatVerifier(
            authorizations: [],
            signingSecrets: ["secret one", "secret two"],
            windowSeconds: 300
        )
        let time = Self.now.secondsSince1970
        let (one, two, other) = (code("secret one", time), code("secret two", time), code("secret three", time))
        let good = [
            "t=\(time),v1=\(one)", "t=\(time),v1=\(two)", "v1=\(one),t=\(time)", "t=\(time), v1=\(one.uppercased())",
            "t=\(time),v1=\(other),v1=\(two)", "t=\(time),v0=x,v1=\(one),v2=y",
        ]
        for good in good { #expect(isAccepted(verifier, signature: good), "\(good)") }
        let bad = [
            nil, "", "t=\(time)", "v1=\(one)", "t=\(time),v1=\(other)", "t=\(time + 1),v1=\(one)", "t=\(time),v1=",
            "t=\(time),v1=\(one.dropLast())", "t=\(time),v1=\(one)0", "t=\(time),t=\(time),v1=\(one)",
            "t=0\(time),v1=\(one)", "t=+\(time),v1=\(one)", "t=\(time).0,v1=\(one)", "t=\(time);v1=\(one)", one,
            "t=\(time),v2=\(one)", "t=\(time),v1=\(String(repeating: "é", count: 32))",
            "t=\(time),v1=\(one)," + String(repeating: "v0=x,", count: 300),
        ]
        for bad in bad { #expect(!isAccepted(verifier, signature: bad), "\(bad ?? "none")") }
        #expect(!isAccepted(verifier, signature: good[0], body: Self.body + [0x20]))
        #expect(!isAccepted(verifier, signature: good[0], body: []))
    }

    @Test("rejects a signature outside the time window, in either direction")
    func window() {
        let verifier = RevenueCatVerifier(authorizations: [], signingSecrets: ["secret"], windowSeconds: 300)
        let now = Self.now.secondsSince1970
        for (time, isGood) in [
            (now - 300, true), (now + 300, true), (now - 301, false), (now + 301, false), (0, false),
        ] {
            #expect(isAccepted(verifier, signature: "t=\(time),v1=\(code("secret", time))") == isGood, "\(time - now)")
        }
    }

    @Test("requires both the header and the signature if both are configured")
    func both() {
        let verifier = RevenueCatVerifier(authorizations: ["a secret"], signingSecrets: ["secret"], windowSeconds: 300)
        let time = Self.now.secondsSince1970
        let signature = "t=\(time),v1=\(code("secret", time))"
        #expect(isAccepted(verifier, authorization: "a secret", signature: signature))
        #expect(!isAccepted(verifier, authorization: "a secret"))
        #expect(!isAccepted(verifier, signature: signature))
    }

    @Test("rejects an invalid header before the body is read")
    func head() {
        let verifier = RevenueCatVerifier(authorizations: ["a secret"], signingSecrets: ["secret"], windowSeconds: 300)
        // Well-formed; whether it is valid depends on the body.
        let signature = "t=1,v1=\(String(repeating: "0", count: 64))"
        #expect(throws: Never.self) { try verifier.checkHead(authorization: "a secret", signature: signature) }
        for (authorization, signature) in [
            ("a secre", signature), (nil, signature), ("a secret", nil), ("a secret", "t=1"), ("a secret", ""),
        ] {
            let error = #expect(throws: BillingError.self) {
                try verifier.checkHead(authorization: authorization, signature: signature)
            }
            #expect(error?.kind == .unverified)
        }
    }
}
