import HTTPTypes
import NIOCore

/// Checks that a body is uncompressed UTF-8, by the request's head before the body is read.
enum BodyEncoding {
    private static let acceptedCharsets: Set = ["utf-8", "utf8", "us-ascii"]

    /// - Returns: 415 if the head declares another encoding; nil if it declares a supported one or none.
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

    /// Whether the bytes are UTF-8 without zero bytes, which indicate UTF-16 or UTF-32.
    static func isUTF8(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.contains(0) && String(validating: bytes, as: UTF8.self) != nil
    }

    /// The values of the parameter charset (RFC 9110, 8.3), in lower case. If there are several, each must be
    /// supported.
    private static func charsets(of contentType: String) -> [String] {
        contentType.lowercased().split(separator: ";").dropFirst().compactMap { parameter in
            let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, pair[0].trimmingSpaces == "charset" else { return nil }
            return pair[1].trimmingSpaces.filter { $0 != "\"" }
        }
    }
}

extension Substring {
    var trimmingSpaces: String {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) }) else {
            return ""
        }
        return String(self[first...last])
    }
}
