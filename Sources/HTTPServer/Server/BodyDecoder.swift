import HTTPTypes
import Hummingbird
import NIOCore
import ServiceCore

/// Reads request bodies, limited in size and time.
struct BodyDecoder: Sendable {
    private let bytesMaximum: Int
    private let timeout: Duration

    init(_ configuration: HTTPConfiguration) {
        bytesMaximum = configuration.settings.bodyBytesMaximum
        timeout = configuration.settings.requestTimeout
    }

    /// The time that the peer gets to read the response before its connection closes.
    private static let closeDelay = TimeAmount.seconds(1)

    /// - Throws: `Problem`: 400, 408, 413 or 415. The connection closes then, because the unread rest of the body would
    ///   be taken for the next request.
    func read(_ request: Request, _ context: HTTPContext) async throws -> ByteBuffer {
        if let problem = BodyEncoding.problem(request.headers) { throw closing(context, problem) }
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > bytesMaximum {
            throw closing(context, tooLarge)
        }
        // A message without options has no body: waiting for none with a timer costs as much as counting it.
        if !request.hasBody { return ByteBuffer() }
        if request.expectsContinue { context.channel?.triggerUserOutboundEvent(BodyRequest(), promise: nil) }
        let (body, maximum, timeout) = (request.body, bytesMaximum, timeout)
        do {
            return try await withThrowingTaskGroup(of: ByteBuffer?.self) { tasks in
                tasks.addTask { try await body.collect(upTo: maximum) }
                tasks.addTask {
                    try await Task.sleep(for: timeout)
                    return nil
                }
                defer { tasks.cancelAll() }
                guard let buffer = try await tasks.next() ?? nil else { throw closing(context, tooSlow) }
                return buffer
            }
        } catch let problem as Problem {
            throw problem
        } catch is NIOTooManyBytesError {
            throw closing(context, tooLarge)
        } catch let error as CancellationError {
            throw error
        } catch {
            // The peer closed the connection, or the framing is malformed.
            throw closing(context, broken)
        }
    }

    /// Closes the connection after a delay, in which the peer can read the response.
    static func close(_ context: HTTPContext) {
        guard let channel = context.channel else { return }
        channel.eventLoop.scheduleTask(in: closeDelay) { channel.close(promise: nil) }
    }

    private func closing(_ context: HTTPContext, _ problem: Problem) -> Problem {
        BodyDecoder.close(context)
        var problem = problem
        problem.headers[.connection] = "close"
        return problem
    }

    private var tooLarge: Problem {
        Problem(
            .contentTooLarge,
            code: "TOOLONG",
            "a body is at most \(bytesMaximum) bytes; send less, or raise http-body-bytes-maximum"
        )
    }

    private var broken: Problem {
        Problem(.badRequest, code: "BADREQUEST", "the body broke off or is malformed; send it again")
    }

    private var tooSlow: Problem {
        Problem(.requestTimeout, code: "TIMEOUT", "the body was not complete in time; send it again")
    }
}

/// An outbound event: the peer is asked for the body of its request with 100 Continue, unless it has begun to send it.
struct BodyRequest {}

extension Request {
    /// Whether the peer waits for 100 Continue before it sends the body (RFC 9110, 10.1.1). Other expectations are
    /// ignored.
    fileprivate var expectsContinue: Bool {
        headers[values: .expect].contains { expectations in
            expectations.lowercased().split(separator: ",").contains { $0.trimmingSpaces == "100-continue" }
        }
    }
}
