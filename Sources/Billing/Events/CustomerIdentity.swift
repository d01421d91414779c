import Crypto
import Usage

/// How a store's customer is named in what is kept.
///
/// A UUID stays, in lower case: it may be the user's. Any other id is whatever an app's developer chose, often an
/// e-mail address, so only its digest is kept: enough to recognise it again, and nothing to read.
enum CustomerIdentity {
    static let digestPrefix = "sha256:"
    /// Of the name that `headroom.forget_billing` puts in a forgotten user's place.
    static let forgottenPrefix = "forgotten:"
    private static let digestLength = 64

    static func kept(_ id: String) -> String {
        if let user = UserID(id) { return user.description }
        if isForgotten(id) { return id }
        return digestPrefix + SHA256.hash(data: Array(id.utf8)).map(hexadecimal).joined()
    }

    /// Nothing else with the prefix is one: an app's own id could be anything.
    static func isForgotten(_ id: String) -> Bool {
        guard id.hasPrefix(forgottenPrefix) else { return false }
        let digits = id.utf8.dropFirst(forgottenPrefix.utf8.count)
        return digits.count == digestLength
            && digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }

    /// In the order in which they came, each once.
    static func distinct(_ identities: [String]) -> [String] {
        var seen: Set<String> = []
        return identities.filter { seen.insert($0).inserted }
    }
}
