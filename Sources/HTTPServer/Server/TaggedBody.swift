import Foundation
import HTTPTypes
import Hummingbird
import JSON
import Usage

/// A body with its entity tag. A client that has the body already gets 304 without it.
struct TaggedBody: Sendable {
    private let bytes: ByteBuffer
    private let mediaType: String
    private let tag: EntityTag
    private let caching: String

    /// - Parameters:
    ///   - language: that of the body's sentences; another one has another tag, also if the sentences are the same.
    ///   - caching: the value of Cache-Control.
    init(_ bytes: some Collection<UInt8>, mediaType: String, in language: LanguageTag? = nil, caching: String) {
        self.bytes = ByteBuffer(bytes: bytes)
        self.mediaType = mediaType
        tag = EntityTag(of: Data(bytes) + Data((language?.text ?? "").utf8))
        self.caching = caching
    }

    /// Usage as JSON: for the client alone, and revalidated with every request.
    init(json bytes: ByteBuffer, in language: LanguageTag? = nil) {
        self.init(
            bytes.readableBytesView,
            mediaType: "application/json",
            in: language,
            caching: "private, no-cache"
        )
    }

    func response(to request: Request) -> Response {
        var fields: HTTPFields = [.eTag: tag.text, .cacheControl: caching]
        // Repeated fields form one list.
        let known = request.headers[values: .ifNoneMatch].joined(separator: ", ")
        if !known.isEmpty, tag.matches(ifNoneMatch: known) {
            return Response(status: .notModified, headers: fields)
        }
        fields[.contentType] = mediaType
        return Response(status: .ok, headers: fields, body: ResponseBody(byteBuffer: bytes))
    }
}

extension ByteBuffer {
    /// - Parameter json: of texts, integers, booleans and finite numbers.
    init(json value: some Encodable) { self.init(string: value.jsonText) }
}
