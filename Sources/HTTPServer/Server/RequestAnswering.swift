import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1

/// Takes a request from the framework's connection to the routes, and their answer back.
struct RequestAnswering<Responder: HTTPResponder>: Sendable where Responder.Context == HTTPContext {
    let responder: Responder
    let date: DateField
    let logger: Logger

    /// The framework answers what is no HTTP, and not in the middle of an answer.
    private struct BrokenWithinAnswer: Error {}

    @Sendable
    func answer(
        _ request: Request,
        _ writer: consuming ResponseWriter,
        _ channel: any Channel
    ) async throws {
        var logger = logger
        logger[metadataKey: "hb.request.id"] = .stringConvertible(RequestID())
        let context = HTTPContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        var response: Response
        do {
            response = try await responder.respond(to: request, context: context)
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
            throw BrokenWithinAnswer()
        }
    }
}
