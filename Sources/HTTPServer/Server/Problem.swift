import Engine
import Foundation
import HTTPTypes
import HeadroomServer
import Hummingbird
import LineProtocol

/// An error as the HTTP side tells it: `application/problem+json`, RFC 9457.
struct Problem: Error, Sendable, Equatable {
    var status: HTTPResponse.Status
    /// The protocol's error code where it has one for this, else a code of the HTTP side's own.
    var code: String
    /// What was wrong and what to do. Never repeats what was sent.
    var detail: String
    var headers: HTTPFields = [:]

    init(_ status: HTTPResponse.Status, code: String, _ detail: String, headers: HTTPFields = [:]) {
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers
    }
}

extension Problem {
    /// The protocol's codes, as statuses.
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
            // Whole seconds are all that the field has.
            headers[.retryAfter] = "\(max(1, ((error.retryAfterMilliseconds ?? 1_000) + 999) / 1_000))"
        }
    }

    init(_ error: EngineError) {
        self.init(ReplyError(error))
    }

    init(_ failure: SessionPool.Failure) {
        self =
            switch failure {
            case .overloaded: Problem(ReplyError(code: .overloaded, text: "too many requests are waiting; try again"))
            case .closed, .cancelled:
                Problem(ReplyError(code: .draining, text: "this instance is shutting down; ask another one"))
            case .tooLate: Problem(ReplyError(code: .unavailable, text: "the database is too busy; try again"))
            case .database(let error) where error.isTransient:
                Problem(ReplyError(code: .unavailable, text: "the database cannot be reached; try again"))
            case .database(let error) where error.sqlState == .unknownUser:
                Problem(ReplyError(code: .notFound, text: error.message))
            case .database:
                Problem(
                    ReplyError(code: .internal, text: "the database refused a statement; the service's log says why")
                )
            }
    }

    static let notFound = Problem(.notFound, code: "NOTFOUND", "there is nothing at this path")
}

extension Problem: HTTPResponseError {
    private struct Body: Encodable {
        var type = "about:blank"
        var title: String
        var status: Int
        var detail: String
        var code: String
    }

    func response(from request: Request, context: some RequestContext) -> Response {
        let (fields, body) = message
        return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: body))
    }

    /// Its fields and its body, as they are sent.
    var message: (fields: HTTPFields, body: ByteBuffer) {
        let body = Body(title: status.reasonPhrase, status: status.code, detail: detail, code: code)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Texts and a number: nothing in it can fail to be encoded.
        let data = (try? encoder.encode(body)) ?? Data()
        var headers = headers
        headers[.contentType] = "application/problem+json"
        headers[.cacheControl] = "no-store"
        return (headers, ByteBuffer(bytes: data))
    }
}
