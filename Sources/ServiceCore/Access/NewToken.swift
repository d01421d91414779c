import Crypto

/// A new token: 256 random bits, so that it cannot be guessed, after a prefix by which scanners of repositories and
/// logs recognize a secret.
public struct NewToken: Sendable {
    public static let prefix = "headroom_"
    private static let randomBytes = 32

    /// The token is shown once and never logged.
    public let text: String
    /// SHA-256; the only part that is stored.
    public let digest: [UInt8]

    public init() {
        var generator = SystemRandomNumberGenerator()
        self.init(random: (0..<NewToken.randomBytes).map { _ in .random(in: .min ... .max, using: &generator) })
    }

    init(random: [UInt8]) {
        text = NewToken.prefix + NewToken.base64url(random)
        digest = Array(SHA256.hash(data: Array(text.utf8)))
    }

    /// RFC 4648, section 5, without padding: no character has a meaning in a shell, a URL or the line protocol.
    private static func base64url(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        var text = ""
        var bits: UInt32 = 0
        var count = 0
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 6 {
                count -= 6
                text.append(alphabet[Int(bits >> UInt32(count) & 63)])
            }
        }
        if count > 0 { text.append(alphabet[Int(bits << UInt32(6 - count) & 63)]) }
        return text
    }
}

extension NewToken: CustomStringConvertible, CustomReflectable {
    public var description: String { "(a new token)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
