import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1

/// Passes requests of Hummingbird's connections to the routes, and writes their responses.
struct RequestDispatcher<Responder: HTTPResponder>: Sendable where Responder.Context == HTTPContext {
    let responder: Responder
    let date: DateField
    let logger: Logger

    /// Replaces a parser error while a response is being written: Hummingbird would answer a parser error, in the
    /// middle of that response.
    private struct MalformedInputWhileWriting: Error {}

    @Sendable
    func dispatch(
        _ request: Request,
        _ writer: consuming ResponseWriter,
        _ channel: any Channel
    ) async throws {
        var logger = logger
        logger[metadataKey: "hb.request.id"] = .stringConvertible(RequestID())
        let context = HTTPContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        var response: Response
        do {
            response = try await respond(request, context)
        } catch let error as HTTPParserError {
            throw error
        } catch {
            logger.debug("a request failed", metadata: ["error.type": "\(type(of: error))"])
            response = Response(status: .internalServerError)
        }
        response.headers[.date] = date.now
        do {
            try await writer.write(response: response.head, body: response.body)
        } catch is HTTPParserError {
            throw MalformedInputWhileWriting()
        }
    }

    /// The API's requests, which take microseconds, are answered on the connections' thread. The others may compute for
    /// milliseconds (pages, certificates), and must not delay these.
    private func respond(_ request: Request, _ context: HTTPContext) async throws -> Response {
        if request.uri.path.hasPrefix("/v1/") { return try await responder.respond(to: request, context: context) }
        return try await withTaskExecutorPreference(globalConcurrentExecutor) {
            try await responder.respond(to: request, context: context)
        }
    }
}
