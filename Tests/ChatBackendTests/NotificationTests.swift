import Crypto
import Foundation
import HTTPTypes
import Testing

@testable import chat_backend

@Suite("Notifications of Headroom")
struct NotificationTests {
    private static let key = Data(repeating: 7, count: 32)
    private static let body = Data(
        #"{"type":"usage.blocked","data":{"user":"u","tier":"blocked","used":8,"limit":8}}"#.utf8
    )

    private func fields(_ id: String, at seconds: Int, key: Data = Self.key) throws -> HTTPFields {
        let content = Data("\(id).\(seconds).".utf8) + Self.body
        let code = HMAC<SHA256>.authenticationCode(for: content, using: SymmetricKey(data: key))
        var fields = HTTPFields()
        for (name, value) in [
            ("webhook-id", id), ("webhook-timestamp", "\(seconds)"),
            ("webhook-signature", "v1,AAAA v1,\(Data(code).base64EncodedString())"),
        ] {
            fields[try #require(HTTPField.Name(name))] = value
        }
        return fields
    }

    private func inbox() throws -> NotificationInbox {
        try NotificationInbox(secret: "whsec_" + Self.key.base64EncodedString())
    }

    @Test("are shown once each, newest first")
    func accepted() async throws {
        let (inbox, now) = (try inbox(), Int(Date().timeIntervalSince1970))
        for id in ["a", "b", "a"] { try await inbox.receive(Self.body, try fields(id, at: now)) }
        let newest = await inbox.newest
        #expect(newest.map(\.id) == ["b", "a"] && newest.map(\.body.data.tier) == ["blocked", "blocked"])
    }

    @Test("are refused if the signature is another one's, or of another time")
    func refused() async throws {
        let (inbox, now) = (try inbox(), Int(Date().timeIntervalSince1970))
        for fields in [
            try fields("a", at: now, key: Data(repeating: 8, count: 32)), try fields("a", at: now - 600), HTTPFields(),
        ] {
            await #expect(throws: Problem.self) { try await inbox.receive(Self.body, fields) }
        }
        #expect(await inbox.newest.isEmpty)
        #expect(throws: (any Error).self) { try NotificationInbox(secret: "s3cret") }
    }
}
