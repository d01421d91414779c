/// The address to which the service sends requests.
enum RequestURL {
    private static let bytesMaximum = 1_024

    /// Over https, or over http to this machine: nobody else can read what is sent.
    static func isLocalOrSecure(_ text: String) -> Bool {
        let local = /http:\/\/(localhost|127(\.[0-9]{1,3}){3}|\[::1\])/
        return isSecure(text) || matches(text, text.prefixMatch(of: local)?.range)
    }

    /// Over https or http.
    static func isValid(_ text: String) -> Bool {
        let plain = /http:\/\/([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])/
        return isSecure(text) || matches(text, text.prefixMatch(of: plain)?.range)
    }

    private static func isSecure(_ text: String) -> Bool {
        let secure = /https:\/\/([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])/
        return matches(text, text.prefixMatch(of: secure)?.range)
    }

    /// Whether a port, a path and a query follow, or nothing.
    private static func matches(_ text: String, _ host: Range<String.Index>?) -> Bool {
        let rest = /(:[0-9]{1,5})?([\/?][\x21-\x22\x24-\x7E]*)?/
        guard let host, text.utf8.count <= bytesMaximum else { return false }
        return text[host.upperBound...].wholeMatch(of: rest) != nil
    }
}
