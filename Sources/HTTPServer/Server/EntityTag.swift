import Crypto
import Foundation

/// Identifies a body by its content (RFC 9110, 8.8.3).
struct EntityTag: Equatable {
    /// The tag with its quotes.
    let text: String

    init(of body: Data) {
        // Half of the digest: collisions are no security risk here.
        let digest = SHA256.hash(data: body).prefix(16)
        let encoded = Data(digest).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        text = "\"" + encoded.replacing("=", with: "") + "\""
    }

    /// Whether a value of If-None-Match matches, by weak comparison: `W/` is ignored. `*` matches any body, a malformed
    /// value none.
    func matches(ifNoneMatch field: String) -> Bool {
        var rest = field[...].drop(while: EntityTag.isSpace)
        if rest.first == "*" { return rest.dropFirst().allSatisfy(EntityTag.isSpace) }
        while !rest.isEmpty {
            if rest.hasPrefix("W/") { rest = rest.dropFirst(2) }
            guard rest.first == "\"", let end = rest.dropFirst().firstIndex(of: "\"") else { return false }
            if rest[...end] == text { return true }
            rest = rest[rest.index(after: end)...].drop(while: EntityTag.isSpace)
            guard rest.isEmpty || rest.first == "," else { return false }
            rest = rest.drop { $0 == "," || EntityTag.isSpace($0) }
        }
        return false
    }

    private static func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" }
}
