import Crypto
import Usage

/// The stored form of a store's customer id.
///
/// A UUID is stored in lower case: it may be the user's. The app's developer chose any other id, often an e-mail address, so
/// only its digest is stored: it can be recognised, and not read.
enum CustomerIdentity {
    static let digestPrefix = "sha256:"
    /// `headroom.forget_billing` replaces a forgotten user's id by one with this prefix.
    static let forgottenPrefix = "forgotten:"
    private static let digestLength = 64

    static func stored(_ id: String) -> String {
        if let user = UserID(id) { return user.description }
        if isForgotten(id) { return id }
        return digestPrefix + SHA256.hash(data: Array(id.utf8)).map(hexadecimal).joined()
    }

    /// The prefix alone is not enough: an app's own id could begin with it.
    static func isForgotten(_ id: String) -> Bool {
        guard id.hasPrefix(forgottenPrefix) else { return false }
        let digits = id.utf8.dropFirst(forgottenPrefix.utf8.count)
        return digits.count == digestLength
            && digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }

    /// Without repetitions, in the same order.
    static func distinct(_ identities: [String]) -> [String] {
        var seen: Set<String> = []
        return identities.filter { seen.insert($0).inserted }
    }
}
