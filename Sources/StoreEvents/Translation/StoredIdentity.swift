import Billing
import Crypto
import Usage

extension CustomerIdentity {
    /// Returns the form of the id that the database stores.
    ///
    /// - Parameter namespace: if the id may be a user's name, the namespace of users' names.
    static func stored(_ id: String, in namespace: UserNamespace? = nil) -> String {
        if isForgotten(id) { return id }
        if let user = UserID(id, in: id.hasPrefix(anonymousPrefix) ? nil : namespace) { return user.description }
        return digestPrefix + SHA256.hash(data: Array(id.utf8)).map(hexadecimal).joined()
    }

    /// The prefix of ids that RevenueCat makes for people who are not signed in.
    private static let anonymousPrefix = "$RCAnonymousID:"

    private static func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
}
