import Foundation
import HTTPTypes
import Hummingbird

/// A body of JSON with its tag; whoever has it already gets the tag alone.
struct JSONAnswer {
    private let body: ByteBuffer
    private let tag: EntityTag
    private let caching: String

    /// - Parameter caching: what may be kept. Where users stand is nobody's but who asked, and is asked for again each time.
    init(data: Data, caching: String = "private, no-cache") {
        body = ByteBuffer(bytes: data)
        tag = EntityTag(of: data)
        self.caching = caching
    }

    init(_ body: some Encodable) throws {
        let encoder = JSONEncoder()
        // The same body has the same tag only if its fields are always in the same order.
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        self.init(data: try encoder.encode(body))
    }

    func response(to request: Request) -> Response {
        var fields: HTTPFields = [.eTag: tag.text, .cacheControl: caching]
        // Several fields of the name are one list.
        let named = request.headers[values: .ifNoneMatch].joined(separator: ", ")
        if !named.isEmpty, tag.isNamed(byIfNoneMatch: named) {
            return Response(status: .notModified, headers: fields)
        }
        fields[.contentType] = "application/json"
        return Response(status: .ok, headers: fields, body: ResponseBody(byteBuffer: body))
    }
}
