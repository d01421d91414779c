import ArgumentParser
import Crypto
import Foundation
import HTTPTypes
import Hummingbird

/// What Headroom posts when a user reaches a tier. A product would send an email; this example shows the last ones.
actor NotificationInbox {
    private static let kept = 20
    /// How far Headroom's clock may be from this machine's.
    private static let tolerance: TimeInterval = 300

    private let key: SymmetricKey
    /// Newest first. Headroom may post one again, with the same id.
    private(set) var newest: [ReceivedNotification] = []

    /// - Parameter secret: `whsec_` and the key in Base64.
    init(secret: String) throws {
        guard secret.hasPrefix("whsec_"), let bytes = Data(base64Encoded: String(secret.dropFirst(6))) else {
            throw ValidationError("CHAT_NOTIFICATIONS_SECRET must be whsec_ and Base64, as notifications-secret")
        }
        key = SymmetricKey(data: bytes)
    }

    /// - Throws: `Problem` with 401 if Headroom has not sent it, or long ago.
    func receive(_ body: Data, _ headers: HTTPFields) throws {
        guard let id = headers["webhook-id"], let sentAt = headers["webhook-timestamp"],
            let seconds = TimeInterval(sentAt), let signatures = headers["webhook-signature"],
            abs(Date().timeIntervalSince1970 - seconds) <= NotificationInbox.tolerance,
            isSigned(Data("\(id).\(sentAt).".utf8) + body, signatures)
        else { throw Problem(.unauthorized, "the signature is not Headroom's") }
        let notification = try JSONDecoder().decode(ReceivedNotification.Body.self, from: body)
        guard !newest.contains(where: { $0.id == id }) else { return }
        newest.insert(ReceivedNotification(id: id, body: notification), at: 0)
        newest = Array(newest.prefix(NotificationInbox.kept))
    }

    /// - Parameter signatures: one for each secret that Headroom has.
    private func isSigned(_ content: Data, _ signatures: String) -> Bool {
        signatures.split(separator: " ").contains { signature in
            guard signature.hasPrefix("v1,"), let code = Data(base64Encoded: String(signature.dropFirst(3))) else {
                return false
            }
            return HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: content, using: key)
        }
    }
}

struct ReceivedNotification: Codable, Sendable {
    struct Usage: Codable {
        var user: String?
        /// What is used so far: the messages of the period, of a window, with a model, or of a member.
        var allowance: String?
        /// The model's name that users read.
        var label: String?
        var member: String?
        var tier: String?
        var used: Int?
        /// Messages that are being answered.
        var held: Int?
        var limit: Int?

        enum CodingKeys: String, CodingKey {
            case user, allowance, member, tier, used, held, limit
            case label = "model_label"
        }
    }

    struct Body: Codable {
        var type: String
        var data: Usage
    }

    var id: String
    var body: Body
}

struct NotificationList: ResponseEncodable {
    var notifications: [ReceivedNotification]
}

extension HTTPFields {
    fileprivate subscript(name: String) -> String? { HTTPField.Name(name).flatMap { self[$0] } }
}
