/// How the database stores the customer id that an app store or billing system sends.
///
/// A UUID may be the user's id, so it is stored as it is, in lower case. The app's developer chose any other id, often
/// an e-mail address, so only its digest is stored: equal ids have equal
/// digests, and an id cannot be read from its digest.
package enum CustomerIdentity {
    package static let digestPrefix = "sha256:"
    /// `headroom.forget_billing` replaces a forgotten user's id by one with this prefix.
    static let forgottenPrefix = "forgotten:"
    private static let digestLength = 64

    /// Whether the id is the replacement of a forgotten user's id. The prefix alone does not tell: an app's own id
    /// could begin with it.
    package static func isForgotten(_ id: String) -> Bool {
        guard id.hasPrefix(forgottenPrefix) else { return false }
        let digits = id.utf8.dropFirst(forgottenPrefix.utf8.count)
        return digits.count == digestLength
            && digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    /// Removes repetitions and keeps the order.
    package static func distinct(_ identities: [String]) -> [String] {
        var seen: Set<String> = []
        return identities.filter { seen.insert($0).inserted }
    }
}
