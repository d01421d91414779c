/// Whether a form may have come from a page of ours, by what browsers say of it themselves, before its seal is looked at.
enum Origin {
    /// - Parameters:
    ///   - origin: the Origin header; nil from what is no browser, and from old ones.
    ///   - fetchSite: the Sec-Fetch-Site header, which no script can set.
    ///   - authority: the Host header.
    static func isOurs(_ origin: String?, fetchSite: String?, authority: String?) -> Bool {
        if let fetchSite { return fetchSite == "same-origin" }
        // Our pages have their browser tell nobody where they are (Referrer-Policy), and Origin is null then, to us too.
        guard let origin, origin != "null" else { return true }
        guard let authority else { return false }
        return origin == "http://\(authority)" || origin == "https://\(authority)"
    }
}
