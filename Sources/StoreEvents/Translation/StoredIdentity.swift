import Billing
import Crypto
import Usage

extension CustomerIdentity {
    /// Returns the form of the id that the database stores.
    static func stored(_ id: String) -> String {
        if let user = UserID(id) { return user.description }
        if isForgotten(id) { return id }
        return digestPrefix + SHA256.hash(data: Array(id.utf8)).map(hexadecimal).joined()
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
}
