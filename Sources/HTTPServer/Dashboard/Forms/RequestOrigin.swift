/// Whether a page of this service sent a request, by the browser's own headers. A first check before the CSRF token.
enum RequestOrigin {
    /// - Parameters:
    ///   - origin: the Origin header; nil from other programs than browsers and from old browsers.
    ///   - fetchSite: the Sec-Fetch-Site header, which no script can set.
    ///   - authority: the Host header.
    static func isSameOrigin(_ origin: String?, fetchSite: String?, authority: String?) -> Bool {
        if let fetchSite { return fetchSite == "same-origin" }
        // With Referrer-Policy: no-referrer, browsers send the Origin null, also to the page's own site.
        guard let origin, origin != "null" else { return true }
        guard let authority else { return false }
        return origin == "http://\(authority)" || origin == "https://\(authority)"
    }
}
