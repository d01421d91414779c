import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// What went wrong with a request, as the page reads it: `{"error": {"code", "message"}}`.
struct Problem: Error, Sendable, HTTPResponseError {
    var status: HTTPResponse.Status
    var code: String
    /// What was wrong and what to do. Never repeats what was sent.
    var message: String
    var headers: HTTPFields = [:]

    private struct Body: Encodable {
        struct Error: Encodable {
            var code: String
            var message: String
        }

        var error: Error
    }

    func response(from request: Request, context: some RequestContext) -> Response {
        var response = JSONAnswer.response(Body(error: .init(code: code, message: message)), status: status)
        for field in headers { response.headers[field.name] = field.value }
        return response
    }

    static let noUser = Problem(
        status: .notFound,
        code: "NOTFOUND",
        message: "a user is a UUID, as 7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
    )
    static let notFound = Problem(status: .notFound, code: "NOTFOUND", message: "there is nothing at this path")

    static func malformed(_ message: String) -> Problem {
        Problem(status: .badRequest, code: "BADREQUEST", message: message)
    }

    static func tooMany(_ message: String) -> Problem {
        Problem(status: .serviceUnavailable, code: "OVERLOADED", message: message, headers: [.retryAfter: "5"])
    }
}

enum JSONAnswer {
    /// Names in Swift become JSON's as the line protocol and the stores have them, with underscores.
    static func data(_ body: some Encodable) -> Data {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return try encoder.encode(body)
        } catch {
            // Texts, whole numbers and nothing else: there is no value that cannot be written.
            preconditionFailure("a body cannot be encoded")
        }
    }

    static func response(_ body: some Encodable, status: HTTPResponse.Status = .ok) -> Response {
        Response(
            status: status,
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: data(body)))
        )
    }
}

extension HTTPField.Name {
    static let retryAfter = HTTPField.Name("Retry-After")!
    static let xContentTypeOptions = HTTPField.Name("X-Content-Type-Options")!
    static let referrerPolicy = HTTPField.Name("Referrer-Policy")!
    static let secFetchSite = HTTPField.Name("Sec-Fetch-Site")!
}
