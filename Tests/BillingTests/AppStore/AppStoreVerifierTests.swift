import Crypto
import Foundation
import JSON
import TestSupport
import Testing
import Usage
import X509

@testable import Billing
@testable import StoreEvents

@Suite("A signed notification")
struct AppStoreVerifierTests {
    private func failure(of body: [UInt8], by verifier: AppStoreVerifier) async -> BillingError? {
        do {
            _ = try await AppStoreNotification.sanitized(body: body, verifier: verifier)
            return nil
        } catch {
            return error
        }
    }

    private func failure(of signed: String, by verifier: AppStoreVerifier) async -> BillingError? {
        await failure(of: AppStorePayload.body(signed), by: verifier)
    }

    @Test("is accepted with a valid chain, at first and from the cache")
    func good() async throws {
        let authority = try TestAuthority()
        let verifier = try authority.verifier()
        let signed = try AppStorePayload("DID_RENEW").signed(by: authority)
        for _ in 0..<3 { #expect(await failure(of: signed, by: verifier) == nil) }
    }

    typealias Recipe = TestAuthority.Recipe
    typealias Chain = @Sendable (TestAuthority) throws -> [[UInt8]]

    struct BadChain: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var reason: String
        var authority: @Sendable () throws -> TestAuthority
        var chain: Chain

        init(
            _ description: String,
            _ reason: String,
            authority: @escaping @Sendable () throws -> TestAuthority = { try TestAuthority() },
            chain: @escaping Chain = { $0.chain }
        ) {
            (testDescription, self.reason, self.authority, self.chain) = (description, reason, authority, chain)
        }
    }

    private static func signer(_ change: (inout Recipe) -> Void) -> Recipe {
        var making = Recipe(isAuthority: false, mark: TestAuthority.signerMark)
        change(&making)
        return making
    }

    private static func intermediate(_ change: (inout Recipe) -> Void) -> Recipe {
        var making = Recipe(mark: TestAuthority.intermediateMark)
        change(&making)
        return making
    }

    private static let wrongCertificates: [BadChain] = [
        BadChain("a signer that had expired", "not valid at the time") {
            try TestAuthority(signer: signer { $0.ends = TestAuthority.time(-1) })
        },
        BadChain("a signer that was not valid yet", "not valid at the time") {
            try TestAuthority(signer: signer { $0.begins = TestAuthority.time(60) })
        },
        BadChain("an intermediate that had expired", "not valid at the time") {
            try TestAuthority(intermediate: intermediate { $0.ends = TestAuthority.time(-1) })
        },
        BadChain("a signer that ends before it begins", "never valid at the same time") {
            try TestAuthority(
                signer: signer { ($0.begins, $0.ends) = (TestAuthority.time(60), TestAuthority.time(-60)) }
            )
        },
        BadChain("a root that had expired", "not valid at the time") {
            try TestAuthority(root: Recipe(ends: TestAuthority.time(-1)))
        },
        BadChain("a signer without its mark", "signer has not the mark") {
            try TestAuthority(signer: signer { $0.mark = nil })
        },
        BadChain("a signer with the intermediate's mark", "signer has not the mark") {
            try TestAuthority(signer: signer { $0.mark = TestAuthority.intermediateMark })
        },
        BadChain("an intermediate without its mark", "intermediate has not the mark") {
            try TestAuthority(intermediate: intermediate { $0.mark = nil })
        },
        BadChain("an intermediate that is no authority", "may not sign, as") {
            try TestAuthority(intermediate: intermediate { $0.isAuthority = false })
        },
        BadChain("an intermediate that may not sign certificates", "may not be used") {
            try TestAuthority(intermediate: intermediate { $0.use = KeyUsage(digitalSignature: true) })
        },
        BadChain("a signer that may not sign", "may not be used") {
            try TestAuthority(signer: signer { $0.use = KeyUsage(keyEncipherment: true) })
        },
        BadChain("a root that allows no intermediate", "may not sign, as") {
            try TestAuthority(root: Recipe(pathLength: 0))
        },
        BadChain("a signer with an unknown critical extension", "chain is not good") {
            try TestAuthority(signer: signer { $0.strangeExtensionIsCritical = true })
        },
        BadChain("an intermediate with an unknown critical extension", "chain is not good") {
            try TestAuthority(intermediate: intermediate { $0.strangeExtensionIsCritical = true })
        },
    ]

    private static let wrongOrders: [BadChain] = [
        BadChain("two certificates", "exactly 3", chain: { $0.chain.dropLast() }),
        BadChain("four certificates", "exactly 3", chain: { $0.chain + [$0.root.der] }),
        BadChain("none", "exactly 3", chain: { _ in [] }),
        BadChain("the wrong way round", "does not end at", chain: { $0.chain.reversed() }),
        BadChain("the first two exchanged", "chain is not good", chain: { [$0.chain[1], $0.chain[0], $0.chain[2]] }),
        BadChain("the signer twice", "chain is not good", chain: { [$0.chain[0], $0.chain[0], $0.chain[2]] }),
        BadChain("the root thrice", "chain is not good", chain: { Array(repeating: $0.root.der, count: 3) }),
        BadChain(
            "another intermediate of the same name",
            "chain is not good",
            chain: {
                let other = try TestAuthority.issue("Test Intermediate", intermediate { _ in }, by: $0.root)
                return [$0.chain[0], other.der, $0.chain[2]]
            }
        ),
        BadChain(
            "bytes that are no certificate",
            "no certificate",
            chain: { [[0x30, 0x03, 0x02, 0x01, 0x01], $0.chain[1], $0.chain[2]] }
        ),
        BadChain(
            "a certificate with something behind it",
            "no certificate",
            chain: { [$0.chain[0] + [0x00], $0.chain[1], $0.chain[2]] }
        ),
    ]

    @Test("is rejected with an invalid chain", arguments: wrongCertificates + wrongOrders)
    func badChains(bad: BadChain) async throws {
        let authority = try bad.authority()
        let signed = try authority.sign(.object(AppStorePayload("TEST").outer), chain: try bad.chain(authority))
        let error = try #require(await failure(of: signed, by: try authority.verifier()))
        #expect(error.kind == .unverified)
        #expect(error.description.contains(bad.reason), "\(error)")
        #expect(!error.description.contains("Test "), "it repeats no name of a certificate's")
    }

    @Test("is rejected under another root, also one of the same name, and whatever root it includes")
    func otherRoot() async throws {
        let (authority, other) = (try TestAuthority(), try TestAuthority())
        let payload = AppStorePayload("TEST")
        for chain in [other.chain, Array(other.chain.dropLast()) + [authority.root.der]] {
            let signed = try other.sign(.object(payload.outer), chain: chain)
            #expect(await failure(of: signed, by: try authority.verifier())?.kind == .unverified)
        }
    }

    @Test("is accepted only if the chain was valid at its time of signing, also from the cache")
    func signingTime() async throws {
        let authority = try TestAuthority(
            signer: AppStoreVerifierTests.signer {
                ($0.begins, $0.ends) = (TestAuthority.time(-3_600), TestAuthority.time(3_600))
            }
        )
        let verifier = try authority.verifier()
        for (seconds, isGood) in [(0, true), (-3_601, false), (3_601, false), (3_599, true), (-86_400 * 400, false)] {
            var payload = AppStorePayload("TEST")
            (payload.transaction, payload.renewal) = (nil, nil)
            payload.outer["signedDate"] = .integer((Int64(TestAuthority.now) + Int64(seconds)) * 1_000)
            let error = await failure(of: try payload.signed(by: authority), by: verifier)
            #expect((error == nil) == isGood, "\(seconds)")
            #expect(isGood || error?.kind == .unverified)
        }
        var undated = AppStorePayload("TEST")
        undated.outer["signedDate"] = nil
        let error = await failure(of: try undated.signed(by: authority), by: verifier)
        #expect(error == BillingError(.malformed, "signedPayload.signedDate is missing"))
    }

    @Test("its signature is verified before its payload is decoded")
    func payloadLast() async throws {
        let authority = try TestAuthority()
        let certificates = JSONValue.array(authority.chain.map { .string(Data($0).base64EncodedString()) })
        let header = JSONValue.object(["alg": "ES256", "x5c": certificates])
        let payloads: [([UInt8], BillingError.Kind)] = [
            (Array("{".utf8), .malformed), (Array(repeating: UInt8(ascii: "["), count: 100_000), .tooLarge),
            (Array("{}".data(using: .utf16) ?? Data()), .encoding),
        ]
        for (payload, kind) in payloads {
            let parts = [Array(header.jsonText.utf8), payload].map(TestAuthority.urlSafe).joined(separator: ".")
            let forged = "\(parts).\(TestAuthority.urlSafe(Array(repeating: 1, count: 64)))"
            #expect(await failure(of: forged, by: try authority.verifier())?.kind == .unverified)
            let genuine = try authority.sign(header: header, payload: payload)
            #expect(await failure(of: genuine, by: try authority.verifier())?.kind == kind)
        }
    }

    private static let otherAlgorithms = [
        "none", "None", "", "HS256", "RS256", "ES384", "es256", "ES256K", "PS256", "EdDSA",
    ]

    @Test("is rejected with any algorithm but ES256", arguments: otherAlgorithms)
    func algorithms(algorithm: String) async throws {
        let authority = try TestAuthority()
        let signed = try authority.sign(.object(AppStorePayload("TEST").outer), algorithm: algorithm)
        #expect(await failure(of: signed, by: try authority.verifier())?.kind == .unverified)
    }

    @Test("is rejected without a signature, or with an HMAC whose secret is the public key")
    func forgedSignatures() async throws {
        let authority = try TestAuthority()
        let payload = Array(JSONValue.object(AppStorePayload("TEST").outer).jsonText.utf8)
        let certificates = JSONValue.array(authority.chain.map { .string(Data($0).base64EncodedString()) })
        for algorithm in ["none", "HS256", "ES256"] {
            let header = JSONValue.object(["alg": .string(algorithm), "x5c": certificates])
            let parts = [Array(header.jsonText.utf8), payload].map(TestAuthority.urlSafe).joined(separator: ".")
            let key = SymmetricKey(data: authority.signerKey.publicKey.derRepresentation)
            let code = Array(HMAC<SHA256>.authenticationCode(for: Array(parts.utf8), using: key))
            for signature in [[], code, code + code, Array(repeating: 0, count: 64)] {
                let signed = "\(parts).\(TestAuthority.urlSafe(signature))"
                #expect(await failure(of: signed, by: try authority.verifier())?.kind == .unverified)
            }
        }
        let critical = JSONValue.object(["alg": "ES256", "x5c": certificates, "crit": .array(["exp"])])
        let signed = try authority.sign(header: critical, payload: payload)
        #expect(await failure(of: signed, by: try authority.verifier())?.kind == .unverified)
    }

    @Test("is rejected when any part of the payload or the signature was altered")
    func altered() async throws {
        let authority = try TestAuthority()
        let verifier = try authority.verifier()
        let signed = try AppStorePayload("DID_RENEW").signed(by: authority)
        let parts = signed.split(separator: ".").map(String.init)
        let later = try #require(Data(base64Encoded: AppStoreVerifierTests.padded(parts[1])))
        let other = String(decoding: later, as: UTF8.self).replacing("DID_RENEW", with: "DID_RENEV")
        let replaced = "\(parts[0]).\(TestAuthority.urlSafe(Array(other.utf8))).\(parts[2])"
        #expect(await failure(of: replaced, by: verifier)?.kind == .unverified)
        // The last character has unused bits.
        for index in [0, 10, 40, parts[2].count - 2] {
            var signature = Array(parts[2].utf8)
            signature[index] = signature[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let text = "\(parts[0]).\(parts[1]).\(String(decoding: signature, as: UTF8.self))"
            #expect(await failure(of: text, by: verifier)?.kind == .unverified)
        }
        #expect(await failure(of: signed, by: verifier) == nil)
    }

    private static func padded(_ part: String) -> String {
        let text = part.replacing("-", with: "+").replacing("_", with: "/")
        return text + String(repeating: "=", count: (4 - text.count % 4) % 4)
    }

    @Test("is rejected when any character was changed")
    func mutations() async throws {
        let seed = SeededGenerator.newSeed()
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let authority = try TestAuthority()
        let verifier = try authority.verifier()
        let signed = Array(try AppStorePayload("DID_RENEW").signed(by: authority).utf8)
        #expect(await failure(of: String(decoding: signed, as: UTF8.self), by: verifier) == nil)
        for _ in 0..<500 {
            var changed = signed
            // Two bits of the last character are unused.
            let index = Int.random(in: 0..<changed.count - 1, using: &random)
            let other = UInt8.random(in: 0x2D...0x7A, using: &random)
            guard changed[index] != other else { continue }
            changed[index] = other
            let text = String(decoding: changed, as: UTF8.self)
            #expect(await failure(of: text, by: verifier) != nil, "\(index): \(other)")
        }
    }

    @Test("is rejected when a signed part was altered, or signed by another authority")
    func inner() async throws {
        let (authority, other) = (try TestAuthority(), try TestAuthority())
        let verifier = try authority.verifier()
        let payload = AppStorePayload("DID_RENEW")
        #expect(await failure(of: try payload.signed(by: authority, inner: other), by: verifier)?.kind == .unverified)
        for name in ["signedTransactionInfo", "signedRenewalInfo"] {
            let content = name == "signedTransactionInfo" ? payload.transaction : payload.renewal
            let parts = try authority.sign(.object(try #require(content))).split(separator: ".")
            let forged = JSONValue.object([
                "productId": "com.example.pro", "signedDate": .integer(AppStorePayload.at.milliseconds),
            ])
            var outer = payload.outer
            var data = try #require(payload.data)
            let text = "\(parts[0]).\(TestAuthority.urlSafe(Array(forged.jsonText.utf8))).\(parts[2])"
            for value in [JSONValue.string(text), .integer(1), .string("a.b.c")] {
                data[name] = value
                outer["data"] = .object(data)
                let error = await failure(of: try authority.sign(.object(outer)), by: verifier)
                #expect(error?.kind == (value == .string(text) ? .unverified : .malformed))
                #expect(error?.description.contains("data.\(name)") == true)
            }
        }
    }

    @Test("is rejected for another app or environment, also in a signed part")
    func elsewhere() async throws {
        let authority = try TestAuthority()
        let verifier = try authority.verifier(appleID: 6_447_000_001)
        var good = AppStorePayload("DID_RENEW")
        #expect(await failure(of: try good.signed(by: authority), by: verifier) == nil)
        let changes: [(inout AppStorePayload) -> Void] = [
            { $0.data?["bundleId"] = "com.example.other" }, { $0.data?["environment"] = "Sandbox" },
            { $0.data?["environment"] = "Xcode" }, { $0.data?["appAppleId"] = .integer(1) },
            { $0.transaction?["bundleId"] = "com.example.other" }, { $0.transaction?["environment"] = "Sandbox" },
            { $0.renewal?["environment"] = "Sandbox" },
            { $0.outer["summary"] = .object(["bundleId": "com.example.other"]) },
        ]
        for change in changes {
            var payload = good
            change(&payload)
            let error = await failure(of: try payload.signed(by: authority), by: verifier)
            #expect(error?.kind == .elsewhere, "\(error.map { "\($0)" } ?? "taken")")
        }
        good.data?["environment"] = "Sandbox"
        good.transaction?["environment"] = "Sandbox"
        good.renewal?["environment"] = "Sandbox"
        for (environments, isGood) in [(AcceptedEnvironments.sandbox, true), (.any, true), (.production, false)] {
            let error = await failure(
                of: try good.signed(by: authority),
                by: try authority.verifier(environments: environments)
            )
            #expect((error == nil) == isGood)
        }
    }

    @Test(
        "is rejected if it is no JWS, or has no chain",
        arguments: [
            "", ".", "..", "...", "a.b", "a.b.c.d", "!!.??.##", "e30.e30.e30", "e30=.e30.e30", "bnVsbA.e30.e30",
            "W10.e30.e30", "e30.W10.e30", "e30.e30.\u{e9}", "e3 0.e30.e30", String(repeating: ".", count: 100_000),
            String(repeating: "A", count: 1_000_000),
        ]
    )
    func garbage(text: String) async throws {
        let authority = try TestAuthority()
        let error = await failure(of: text, by: try authority.verifier())
        // The header {} has no certificates; the other texts have no header.
        #expect(error?.kind == (["e30.e30.e30", "e30.W10.e30"].contains(text) ? .unverified : .malformed))
    }

    @Test("a body of another form is rejected as malformed")
    func bodies() async throws {
        let verifier = try TestAuthority().verifier()
        for text in [
            "", "{}", "[]", #"{"signedPayload":7}"#, #"{"signedPayload":null}"#, #"{"signedpayload":"a.b.c"}"#,
        ] {
            #expect(await failure(of: Array(text.utf8), by: verifier)?.kind == .malformed, "\(text)")
        }
    }

    @Test("is rejected as too large if a signed part nests too deep")
    func depth() async throws {
        let authority = try TestAuthority()
        var nested = JSONValue.integer(1)
        for _ in 0..<40 { nested = .array([nested]) }
        let signed = try authority.sign(.object(["a": nested]))
        let error = try #require(await failure(of: signed, by: try authority.verifier()))
        #expect(error.kind == .tooLarge)
        #expect(error.description.hasPrefix("signedPayload's payload is nested deeper"))
    }

    @Test("needs a root certificate in PEM or DER form")
    func roots() throws {
        let authority = try TestAuthority()
        let pem = try authority.root.certificate.serializeAsPEM().pemString
        #expect(try PinnedRoot(file: Array(pem.utf8)) == PinnedRoot(file: authority.root.der))
        let keyPEM = authority.signerKey.pemRepresentation
        for bytes in [[], Array("hello".utf8), Array(keyPEM.utf8), authority.signer.der, authority.intermediate.der] {
            #expect(throws: BillingError.self) { try PinnedRoot(file: bytes) }
        }
    }
}
