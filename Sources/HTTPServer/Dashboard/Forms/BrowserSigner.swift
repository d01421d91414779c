import Crypto

/// Signs texts for one browser: an HMAC of a text and of the browser's cookie under a key of this process. Every form
/// has such a signature as its CSRF token: another site knows neither the cookie nor the key, so it cannot submit a
/// form.
struct BrowserSigner: Sendable {
    private let key: SymmetricKey

    init(key: SymmetricKey = SymmetricKey(size: .bits256)) {
        self.key = key
    }

    func csrfToken(for cookie: String) -> String {
        signature(of: "form", for: cookie)
    }

    /// - Parameter cookie: the value of the browser's cookie.
    func signature(of text: String, for cookie: String) -> String {
        let code = HMAC<SHA256>.authenticationCode(for: BrowserSigner.message(text, cookie), using: key)
        return RandomIdentifier.hexadecimal(code)
    }

    func isValid(csrfToken: String, for cookie: String) -> Bool {
        isValid(csrfToken, of: "form", for: cookie)
    }

    /// In constant time.
    func isValid(_ signature: String, of text: String, for cookie: String) -> Bool {
        guard RandomIdentifier.isWellFormed(signature) else { return false }
        let digits = Array(signature.utf8)
        let bytes = stride(from: 0, to: digits.count, by: 2).map { index in
            BrowserSigner.value(digits[index]) << 4 | BrowserSigner.value(digits[index + 1])
        }
        let message = BrowserSigner.message(text, cookie)
        return HMAC<SHA256>.isValidAuthenticationCode(bytes, authenticating: message, using: key)
    }

    /// Begins with the text's length, so that different pairs are different messages.
    private static func message(_ text: String, _ cookie: String) -> [UInt8] {
        Array("\(text.utf8.count) \(text)\(cookie)".utf8)
    }

    private static func value(_ digit: UInt8) -> UInt8 {
        digit >= UInt8(ascii: "a") ? digit - UInt8(ascii: "a") + 10 : digit - UInt8(ascii: "0")
    }
}
