import Billing
import Crypto
import Foundation
import SwiftASN1
import TestSupport
import Testing
import Usage
import X509

@testable import HTTPServer
@testable import HeadroomServer

@Suite("The stores, as the settings say it")
struct StoreSendersTests {
    private func senders(_ flags: [String: String]) throws -> StoreSenders {
        try StoreSenders(try ServerConfiguration(SettingsReader(flags: flags, environment: [:])).webhooks)
    }

    private func write(_ bytes: [UInt8], to directory: TemporaryDirectory, as name: String) throws -> String {
        let path = "\(directory.path)/\(name)"
        try Data(bytes).write(to: URL(filePath: path))
        return path
    }

    /// A certificate that signed itself.
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

    @Test("are nobody without settings")
    func none() throws {
        let senders = try senders([:])
        for store in StoreSenders.all { #expect(senders.endpoint(of: store.source) == nil) }
    }

    @Test("have an endpoint for each that can be translated, and no other")
    func lists() {
        #expect(StoreSenders.all.map { $0.source } == Stores.all.map { $0.source })
        #expect(Set(Stores.all.map { $0.source }).count == Stores.all.count)
    }

    @Test("have their secrets from settings and files together")
    func secrets() throws {
        let directory = try TemporaryDirectory()
        let file = try write(Array("  Bearer two \r\n\nthree\n".utf8), to: directory, as: "authorizations")
        let flags = ["revenuecat-authorization": "one", "revenuecat-authorization-file": file]
        let endpoint = try senders(flags).endpoint(of: .revenuecat) as? RevenueCatEndpoint
        let sender = try #require(endpoint).sender
        let now = at("2026-11-21T17:00:00Z")
        for text in ["one", "Bearer two", "three", "Bearer three"] {
            #expect(throws: Never.self) { try sender.verify(authorization: text, signature: nil, body: [], now: now) }
        }
        for text in ["two", "", "one,three"] {
            #expect(throws: BillingError.self) {
                try sender.verify(authorization: text, signature: nil, body: [], now: now)
            }
        }
    }

    @Test("have a root in PEM or in DER form")
    func roots() throws {
        let directory = try TemporaryDirectory()
        let root = try root()
        var serializer = DER.Serializer()
        try serializer.serialize(root)
        for bytes in [Array(try root.serializeAsPEM().pemString.utf8), serializer.serializedBytes] {
            let path = try write(bytes, to: directory, as: "root")
            let flags = ["appstore-bundle-id": "com.example.chat", "appstore-root-certificate": path]
            #expect(try senders(flags).endpoint(of: .appstore) != nil)
        }
    }

    @Test("are refused with a file that cannot be used, by its name and without its contents")
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
                let error = #expect(throws: StoreSenders.Unusable.self) { try senders(flags) }
                #expect(error?.description.contains(file) == true && error?.description.contains(name) == true)
                #expect(error?.description.contains("s3cret") == false)
            }
        }
    }
}
