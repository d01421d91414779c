import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// Reads JSON bodies within a size and a time.
enum BodyDecoder {
    static let bytesMaximum = 32 * 1_024
    private static let timeout = Duration.seconds(10)
    /// What is left of a body would be taken for the next request: the browser gets the answer, and the connection ends.
    private static let closeDelay = TimeAmount.seconds(1)

    /// - Throws: `Problem`: 400, 408 or 413.
    static func read<Body: Decodable>(
        _ type: Body.Type,
        _ request: Request,
        _ context: ChatContext,
        expected: String
    ) async throws -> Body {
        let bytes = try await collect(request, context)
        guard let body = try? JSONDecoder().decode(type, from: Data(buffer: bytes)) else {
            throw Problem.malformed("the body must be \(expected)")
        }
        return body
    }

    private static func collect(_ request: Request, _ context: ChatContext) async throws -> ByteBuffer {
        let length = request.headers[.contentLength].flatMap { Int($0) } ?? 0
        guard length <= bytesMaximum else { throw closing(context, tooLarge) }
        let body = request.body
        do {
            return try await withThrowingTaskGroup(of: ByteBuffer?.self) { tasks in
                tasks.addTask { try await body.collect(upTo: bytesMaximum) }
                tasks.addTask {
                    try await Task.sleep(for: timeout)
                    return nil
                }
                defer { tasks.cancelAll() }
                guard let bytes = try await tasks.next() ?? nil else { throw closing(context, tooSlow) }
                return bytes
            }
        } catch is NIOTooManyBytesError {
            throw closing(context, tooLarge)
        }
    }

    private static func closing(_ context: ChatContext, _ problem: Problem) -> Problem {
        let channel = context.channel
        channel.eventLoop.scheduleTask(in: closeDelay) { channel.close(promise: nil) }
        var problem = problem
        problem.headers[.connection] = "close"
        return problem
    }

    private static let tooLarge = Problem(
        status: .contentTooLarge,
        code: "TOOLONG",
        message: "a body is at most \(bytesMaximum) bytes"
    )
    private static let tooSlow = Problem(
        status: .requestTimeout,
        code: "TIMEOUT",
        message: "the body was not complete in time; send it again"
    )
}
