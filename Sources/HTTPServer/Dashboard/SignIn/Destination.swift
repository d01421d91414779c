/// Where to go on after signing in.
enum Destination {
    static let overview = "/dashboard"

    /// Only a page of ours, whatever somebody put into a link.
    static func checked(_ path: String?) -> String {
        guard let path, path.utf8.count <= 200, path.hasPrefix(overview) else { return overview }
        let rest = path.utf8.dropFirst(overview.utf8.count)
        let isOurs = rest.isEmpty || rest.first == UInt8(ascii: "/") || rest.first == UInt8(ascii: "?")
        // Visible ASCII, without what a browser would take for something else.
        let isPlain = path.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }
        // Signing in leads nowhere, a stream is no page, and what was sent once is not sent again.
        let isPage = ["sign-in", "sign-out", "live"].allSatisfy { !path.hasPrefix("\(overview)/\($0)") }
        return isOurs && isPlain && isPage && !path.contains("//") ? path : overview
    }
}
