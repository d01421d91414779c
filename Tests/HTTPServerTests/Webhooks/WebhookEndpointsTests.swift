import Billing
import Crypto
import Foundation
import StoreEvents
import SwiftASN1
import TestSupport
import Testing
import Usage
import X509

@testable import HTTPServer
@testable import ServiceCore

@Suite("Webhook endpoints")
struct WebhookEndpointsTests {
    private func endpoints(_ flags: [String: String]) throws -> WebhookEndpoints {
        try WebhookEndpoints(try ServerConfiguration(SettingsReader(flags: flags, environment: [:])).settings)
    }

    private func write(_ bytes: [UInt8], to directory: TemporaryDirectory, as name: String) throws -> String {
        let path = "\(directory.path)/\(name)"
        try Data(bytes).write(to: URL(filePath: path))
        return path
    }

    /// A self-signed certificate.
    private func root() throws -> Certificate {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName("Test Root") }
        return try Certificate(
            version: .v3,
            serialNumber: Certificate.SerialNumber(),
            publicKey: Certificate.PublicKey(key.publicKey),
            notValidBefore: Date(timeIntervalSince1970: 0),
            notValidAfter: Date(timeIntervalSince1970: 4_000_000_000),
            issuer: name,
            subject: name,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
            },
            issuerPrivateKey: Certificate.PrivateKey(key)
        )
    }

    @Test("without settings there are none")
    func none() throws {
        let endpoints = try self.endpoints([:])
        for store in WebhookEndpoints.types { #expect(endpoints.endpoint(of: store.source) == nil) }
    }

    @Test("every store has one")
    func lists() {
        #expect(WebhookEndpoints.types.map { $0.source } == Stores.all.map { $0.source })
        #expect(Set(Stores.all.map { $0.source }).count == Stores.all.count)
    }

    @Test("secrets come from settings and files together")
    func secrets() throws {
        let directory = try TemporaryDirectory()
        let file = try write(Array("  Bearer two \r\n\nthree\n".utf8), to: directory, as: "authorizations")
        let flags = ["revenuecat-authorization": "one", "revenuecat-authorization-file": file]
        let endpoint = try endpoints(flags).endpoint(of: .revenuecat) as? RevenueCatEndpoint
        let verifier = try #require(endpoint).verifier
        let now = at("2026-11-21T17:00:00Z")
        for text in ["one", "Bearer two", "three", "Bearer three"] {
            #expect(throws: Never.self) { try verifier.verify(authorization: text, signature: nil, body: [], now: now) }
        }
        for text in ["two", "", "one,three"] {
            #expect(throws: BillingError.self) {
                try verifier.verify(authorization: text, signature: nil, body: [], now: now)
            }
        }
    }

    @Test("a root certificate is PEM or DER")
    func roots() throws {
        let directory = try TemporaryDirectory()
        let root = try root()
        var serializer = DER.Serializer()
        try serializer.serialize(root)
        for bytes in [Array(try root.serializeAsPEM().pemString.utf8), serializer.serializedBytes] {
            let path = try write(bytes, to: directory, as: "root")
            let flags = ["appstore-bundle-id": "com.example.chat", "appstore-root-certificate": path]
            #expect(try endpoints(flags).endpoint(of: .appstore) != nil)
        }
    }

    @Test("an unusable file is reported by name and without its contents")
    func badFiles() throws {
        let directory = try TemporaryDirectory()
        let files = [
            "\(directory.path)/missing", directory.path, try write([], to: directory, as: "empty"),
            try write(Array("s3cret\u{0}\n".utf8) + [0xFF], to: directory, as: "bytes"),
            try write(Array(repeating: 0x61, count: 65_537), to: directory, as: "large"),
        ]
        for file in files {
            for name in [
                "revenuecat-authorization-file", "revenuecat-signing-secret-file", "appstore-root-certificate",
            ] {
                var flags = [name: file]
                if name.hasPrefix("appstore") { flags["appstore-bundle-id"] = "com.example.chat" }
                let error = #expect(throws: SettingFile.Unusable.self) { try endpoints(flags) }
                #expect(error?.description.contains(file) == true && error?.description.contains(name) == true)
                #expect(error?.description.contains("s3cret") == false)
            }
        }
    }
}
