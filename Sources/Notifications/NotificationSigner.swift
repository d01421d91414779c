import Crypto
import Foundation
import ServiceCore

/// Signs requests as Standard Webhooks describes (standardwebhooks.com), with every secret that is set.
package struct NotificationSigner: Sendable {
    private static let prefix = "whsec_"
    private static let secretBytes = 24...64

    private let keys: [SymmetricKey]

    /// Reads the file of secrets.
    package init(_ settings: SettingValues<NotificationSettings>) throws(SettingFile.Unusable) {
        let texts = try settings.secrets.texts()
        try self.init(secrets: texts.flatMap { $0.split(whereSeparator: \.isWhitespace).map(String.init) })
    }

    /// - Parameter secrets: `whsec_` and the key in Base64.
    init(secrets: [String]) throws(SettingFile.Unusable) {
        var keys: [SymmetricKey] = []
        for secret in secrets {
            guard secret.hasPrefix(NotificationSigner.prefix),
                let bytes = Data(base64Encoded: String(secret.dropFirst(NotificationSigner.prefix.count))),
                NotificationSigner.secretBytes.contains(bytes.count)
            else {
                throw SettingFile.Unusable(
                    description: """
                        notifications-secret (HEADROOM_NOTIFICATIONS_SECRET) must be whsec_ and 24 to 64 bytes in Base64, as \
                        echo "whsec_$(openssl rand -base64 32)" prints
                        """
                )
            }
            keys.append(SymmetricKey(data: bytes))
        }
        self.keys = keys
    }

    /// The headers of a request.
    ///
    /// - Parameter sentAt: seconds since 1970.
    func headers(id: String, sentAt: Int64, body: String) -> [(name: String, value: String)] {
        let content = Data("\(id).\(sentAt).\(body)".utf8)
        let signatures = keys.map { key in
            "v1," + Data(HMAC<SHA256>.authenticationCode(for: content, using: key)).base64EncodedString()
        }
        return [
            ("webhook-id", id), ("webhook-timestamp", "\(sentAt)"),
            ("webhook-signature", signatures.joined(separator: " ")),
        ]
    }
}
