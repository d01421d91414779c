/// Whether a page of this service sent a request, by the headers of the browser itself. For forms, a first check before
/// the CSRF token.
enum RequestOrigin {
    /// - Parameters:
    ///   - allowsNull: with Referrer-Policy: no-referrer, browsers send the Origin null, also to the page's own site.
    ///   - origin: the Origin header; nil from other programs than browsers and from old browsers.
    ///   - fetchSite: the Sec-Fetch-Site header, which no script can set.
    ///   - authority: the Host header.
    static func isSameOrigin(
        _ origin: String?,
        fetchSite: String?,
        authority: String?,
        allowsNull: Bool = false
    ) -> Bool {
        if let fetchSite { return fetchSite == "same-origin" }
        guard let origin else { return true }
        if origin == "null" { return allowsNull }
        guard let authority else { return false }
        return origin == "http://\(authority)" || origin == "https://\(authority)"
    }
}
