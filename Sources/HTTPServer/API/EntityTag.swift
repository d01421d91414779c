import Crypto
import Foundation

/// Names a body by what is in it (RFC 9110, section 8.8.3), so that who has it already is told so instead.
struct EntityTag: Equatable {
    /// With its quotes.
    let text: String

    init(of body: Data) {
        // Half of the digest: nobody gains by making two bodies with one name.
        let digest = SHA256.hash(data: body).prefix(16)
        let encoded = Data(digest).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
        text = "\"" + encoded.replacing("=", with: "") + "\""
    }

    /// Whether a field If-None-Match names this body: by weak comparison, as it wants it, so `W/` does not matter; `*` is
    /// any body. What is no list of tags names nothing.
    func isNamed(byIfNoneMatch field: String) -> Bool {
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
