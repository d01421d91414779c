/// The address to which the service sends requests.
enum RequestURL {
    static let bytesMaximum = 1_024

    /// Whether requests go over https, or over http to this machine: other machines cannot read what is sent.
    static func isLocalOrSecure(_ text: String) -> Bool {
        let local = /http:\/\/(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:|\/|\?|$)/
        return isValid(text) && (text.hasPrefix("https:") || text.prefixMatch(of: local) != nil)
    }

    /// Whether the text is such an address, over https or http.
    static func isValid(_ text: String) -> Bool {
        let host = /https?:\/\/([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])/
        // A port, a path and a query, or nothing.
        let rest = /(:[0-9]{1,5})?([\/?][\x21-\x22\x24-\x7E]*)?/
        guard let host = text.prefixMatch(of: host)?.range, text.utf8.count <= bytesMaximum else { return false }
        return text[host.upperBound...].wholeMatch(of: rest) != nil
    }
}
