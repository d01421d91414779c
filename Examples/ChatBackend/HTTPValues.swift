import Foundation
import HTTPTypes
import Hummingbird

/// The answer to a failed request: `{"error": {"code", "message"}}`.
struct Problem: HTTPResponseError, Equatable {
    var status: HTTPResponse.Status
    var code: String
    /// The cause and what to do. Never repeats what the request contained.
    var message: String

    init(_ status: HTTPResponse.Status, code: String = "REFUSED", _ message: String) {
        self.status = status
        self.code = code
        self.message = message
    }

    func response(from request: Request, context: some RequestContext) throws -> Response {
        let body = ["error": ["code": code, "message": message]]
        var response = try context.responseEncoder.encode(body, from: request, context: context)
        response.status = status
        return response
    }
}

struct HTML: ResponseGenerator {
    var text: String

    func response(from request: Request, context: some RequestContext) -> Response {
        Response(
            status: .ok,
            headers: [.contentType: "text/html; charset=utf-8", .cacheControl: "no-cache"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text))
        )
    }
}

extension CacheControl {
    /// Browsers revalidate the files each time.
    static let pageFiles = CacheControl([(MediaType(type: .any), [.noCache])])
}

extension JSONEncoder {
    /// Writes `canSubscribe` as `can_subscribe`: the names of the line protocol and of the stores.
    static var snakeCase: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return encoder
    }
}
