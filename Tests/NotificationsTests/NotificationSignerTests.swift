import ServiceCore
import Testing

@testable import Notifications

@Suite("The signature of a notification")
struct NotificationSignerTests {
    // The example of the Standard Webhooks libraries.
    private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    private static let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

    private func headers(_ secrets: [String]) throws -> [String: String] {
        let headers = try NotificationSigner(secrets: secrets).headers(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            sentAt: 1_614_265_330,
            body: #"{"test": 2432232314}"#
        )
        return Dictionary(uniqueKeysWithValues: headers.map { ($0.name, $0.value) })
    }

    @Test("is that of the published example")
    func example() throws {
        #expect(
            try headers([Self.secret]) == [
                "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
                "webhook-signature": Self.signature,
            ]
        )
    }

    @Test("is made with each secret, in their order")
    func rotation() throws {
        let other = "whsec_" + String(repeating: "QUFB", count: 8)
        let signatures = try #require(try headers([other, Self.secret])["webhook-signature"]).split(separator: " ")
        #expect(signatures.count == 2 && signatures[1] == Self.signature && signatures[0] != Self.signature)
        #expect(signatures.allSatisfy { $0.hasPrefix("v1,") })
    }

    @Test(
        "needs a secret of the documented form, and does not quote another",
        arguments: [
            "s3cret", "whsec_", "whsec_s3cret!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_" + String(repeating: "QUFB", count: 7), "whsec_" + String(repeating: "QUFB", count: 22),
        ]
    )
    func bad(secret: String) {
        let error = #expect(throws: SettingFile.Unusable.self) { try NotificationSigner(secrets: [secret]) }
        #expect(error?.description.contains("notifications-secret") == true)
        #expect(error?.description.contains(secret.dropFirst(6)) != true || secret.count == 6)
    }
}
