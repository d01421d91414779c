import Crypto

/// What a form carries so that only a page of ours can have sent it: an HMAC of the browser's own cookie under a key of
/// this process. Another site knows neither, so it cannot make a browser change something here.
struct FormSeal: Sendable {
    private let key: SymmetricKey

    init(key: SymmetricKey = SymmetricKey(size: .bits256)) {
        self.key = key
    }

    /// - Parameters:
    ///   - purpose: what is sealed; a seal for one thing is none for another.
    ///   - visitor: the cookie's value.
    func seal(_ purpose: String, for visitor: String) -> String {
        RandomName.hexadecimal(code(purpose, visitor))
    }

    /// In a time that does not depend on how much of it is right.
    func isValid(_ seal: String, _ purpose: String, for visitor: String) -> Bool {
        guard RandomName.isOne(seal) else { return false }
        let digits = Array(seal.utf8)
        let bytes = stride(from: 0, to: digits.count, by: 2).map { index in
            FormSeal.value(digits[index]) << 4 | FormSeal.value(digits[index + 1])
        }
        return HMAC<SHA256>.isValidAuthenticationCode(
            bytes,
            authenticating: FormSeal.text(purpose, visitor),
            using: key
        )
    }

    private func code(_ purpose: String, _ visitor: String) -> HMAC<SHA256>.MAC {
        HMAC<SHA256>.authenticationCode(for: FormSeal.text(purpose, visitor), using: key)
    }

    /// With the length in front, so that no two pairs are the same text.
    private static func text(_ purpose: String, _ visitor: String) -> [UInt8] {
        Array("\(purpose.utf8.count) \(purpose)\(visitor)".utf8)
    }

    private static func value(_ digit: UInt8) -> UInt8 {
        digit >= UInt8(ascii: "a") ? digit - UInt8(ascii: "a") + 10 : digit - UInt8(ascii: "0")
    }
}
