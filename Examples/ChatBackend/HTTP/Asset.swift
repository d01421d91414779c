import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// A file of the page, with its tag: who has it already is told so instead.
struct Asset: Sendable {
    let mediaType: String
    let data: Data
    let entityTag: String

    init(name: String, data: Data) {
        mediaType =
            Asset.mediaTypes[name.split(separator: ".").last.map(String.init) ?? ""] ?? "application/octet-stream"
        self.data = data
        let digest = SHA256.hash(data: data).prefix(16)
        entityTag = "\"" + digest.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() + "\""
    }

    private static let mediaTypes = [
        "html": "text/html; charset=utf-8",
        "css": "text/css; charset=utf-8",
        "js": "text/javascript; charset=utf-8",
        "svg": "image/svg+xml",
    ]

    func response(to request: Request) -> Response {
        var fields: HTTPFields = [.eTag: entityTag, .cacheControl: "no-cache"]
        let known = request.headers[values: .ifNoneMatch].joined(separator: ",").split(separator: ",")
        if known.contains(where: { [entityTag, "W/\(entityTag)"].contains($0.trimmingCharacters(in: .whitespaces)) }) {
            return Response(status: .notModified, headers: fields)
        }
        fields[.contentType] = mediaType
        return Response(status: .ok, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: data)))
    }
}
