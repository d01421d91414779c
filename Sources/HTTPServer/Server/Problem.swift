import Engine
import HTTPTypes
import Hummingbird
import LineProtocol
import NIOCore
import ServiceCore
import Usage

/// An error response: `application/problem+json`, RFC 9457.
struct Problem: Error, Sendable, Equatable {
    var status: HTTPResponse.Status
    /// The line protocol's error code if it has one for this, else a code of the HTTP server.
    var code: String
    /// The cause and what to do. Never repeats input.
    var detail: String
    /// A sentence for the user, if usage could not be checked.
    var banner: String?
    var headers: HTTPFields = [:]

    init(_ status: HTTPResponse.Status, code: String, _ detail: String, headers: HTTPFields = [:]) {
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers
    }
}

extension Problem {
    /// Maps the line protocol's codes to statuses.
    init(_ error: ReplyError) {
        let status: HTTPResponse.Status =
            switch error.code {
            case .noAuth: .unauthorized
            case .forbidden: .forbidden
            case .notFound: .notFound
            case .conflict: .conflict
            case .expired: .gone
            case .unavailable, .overloaded, .draining: .serviceUnavailable
            case .unknown: .gatewayTimeout
            case .internal: .internalServerError
            case .tooLong: .contentTooLarge
            default: .badRequest
            }
        self.init(status, code: error.code.rawValue, error.text)
        if status == .unauthorized { headers[.wwwAuthenticate] = "Bearer realm=\"headroom\"" }
        if status == .serviceUnavailable {
            // The header has whole seconds.
            headers[.retryAfter] = "\(max(1, ((error.retryAfterMilliseconds ?? 1_000) + 999) / 1_000))"
        }
    }

    init(_ error: EngineError) {
        self.init(ReplyError(error))
    }

    /// Makes the problem of a request about a user's messages.
    ///
    /// - Parameters:
    ///   - reply: to the same request over the line protocol.
    ///   - error: if the engine did not carry it out in time, the problem has a banner.
    init(_ reply: ReplyError, for error: EngineError, in vocabulary: Vocabulary) {
        self.init(reply)
        guard error.isTransient || error.code == .unknown else { return }
        banner = Phrase(.unreadable).text(in: vocabulary)
        vocabulary.writeFields(to: &headers)
    }

    init(_ failure: SessionPool.Failure) {
        switch failure {
        case .closed, .cancelled:
            self.init(ReplyError(code: .draining, text: EngineError(failure).message))
        case .overloaded, .tooLate, .database: self.init(EngineError(failure))
        }
    }

    static let tooManyRequests = Problem(
        ReplyError(
            code: .overloaded,
            text: "too many requests are in progress; try again, or raise http-connections-maximum and, if it is set, "
                + "http-connections-per-address-maximum"
        )
    )

    static let notFound = Problem(.notFound, code: "NOTFOUND", "there is nothing at this path")
}

extension Problem: HTTPResponseError {
    private struct Body: Encodable {
        var type = "about:blank"
        var title: String
        var status: Int
        var detail: String
        var code: String
        var banner: String?
    }

    func response(from request: Request, context: some RequestContext) -> Response {
        let (fields, body) = message
        return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: body))
    }

    /// The header fields and the body.
    var message: (fields: HTTPFields, body: ByteBuffer) {
        let body = Body(title: status.reasonPhrase, status: status.code, detail: detail, code: code, banner: banner)
        var headers = headers
        headers[.contentType] = "application/problem+json"
        headers[.cacheControl] = "no-store"
        return (headers, ByteBuffer(json: body))
    }
}
