/// Whether a form may have come from a page of ours, by what browsers say of it themselves, before its seal is looked at.
enum Origin {
    /// - Parameters:
    ///   - origin: the Origin header; nil from what is no browser, and from old ones.
    ///   - fetchSite: the Sec-Fetch-Site header, which no script can set.
    ///   - authority: the Host header.
    static func isOurs(_ origin: String?, fetchSite: String?, authority: String?) -> Bool {
        if let fetchSite, fetchSite != "same-origin" { return false }
        guard let origin else { return true }
        guard let authority else { return false }
        // A page that may not say where it is from says null.
        return origin == "http://\(authority)" || origin == "https://\(authority)"
    }
}
