import HTTPTypes
import NIOCore

/// Bodies are UTF-8 and not compressed. What the head says of a body is checked before any of it is read; what the head
/// does not say is found when the body is parsed.
enum BodyEncoding {
    private static let acceptedCharsets: Set = ["utf-8", "utf8", "us-ascii"]

    /// - Returns: 415 where the fields of a request's head name another encoding; nil where they name none.
    static func problem(_ headers: HTTPFields) -> Problem? {
        let codings = (headers[.contentEncoding] ?? "").lowercased().split(separator: ",").map(\.trimmingSpaces)
        guard codings.allSatisfy({ $0 == "identity" || $0.isEmpty }) else {
            return Problem(
                .unsupportedMediaType,
                code: "BADENCODING",
                "a compressed body is not supported; send it without Content-Encoding"
            )
        }
        guard charsets(of: headers[.contentType] ?? "").allSatisfy(acceptedCharsets.contains) else { return notUTF8 }
        return nil
    }

    static let notUTF8 = Problem(
        .unsupportedMediaType,
        code: "BADENCODING",
        "the body must be UTF-8; send it in UTF-8 and with charset=utf-8, or without a charset"
    )

    /// Whether bytes are a text in UTF-8. A zero byte, which UTF-16 and UTF-32 are full of, has no place in a form.
    static func isUTF8(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.contains(0) && String(validating: bytes, as: UTF8.self) != nil
    }

    /// The values of the parameter charset (RFC 9110, 8.3), in lower case. Each of them has to be accepted, because
    /// it is unknown which one a receiver would use.
    private static func charsets(of contentType: String) -> [String] {
        contentType.lowercased().split(separator: ";").dropFirst().compactMap { parameter in
            let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, pair[0].trimmingSpaces == "charset" else { return nil }
            return pair[1].trimmingSpaces.filter { $0 != "\"" }
        }
    }
}

extension Substring {
    fileprivate var trimmingSpaces: String {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) }) else {
            return ""
        }
        return String(self[first...last])
    }
}
