/// The page to show after signing in.
enum ReturnPath {
    static let overview = "/dashboard"

    /// - Returns: the path if it is a page of the dashboard, else the overview: a link must not lead to another site.
    static func validated(_ path: String?) -> String {
        guard let path, path.utf8.count <= 200, path.hasPrefix(overview) else { return overview }
        let rest = path.utf8.dropFirst(overview.utf8.count)
        let isDashboard = rest.isEmpty || rest.first == UInt8(ascii: "/") || rest.first == UInt8(ascii: "?")
        // Visible ASCII without backslashes, which browsers take as slashes.
        let isPlain = path.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }
        // Not the sign-in page itself, the address of the sign-out form, or the stream of live numbers.
        let isPage = ["sign-in", "sign-out", "live"].allSatisfy { !path.hasPrefix("\(overview)/\($0)") }
        return isDashboard && isPlain && isPage && !path.contains("//") ? path : overview
    }
}
