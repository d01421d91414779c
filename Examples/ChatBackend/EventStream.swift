import Foundation
import HTTPTypes
import Hummingbird
import ServiceLifecycle

/// Sends server-sent events to a browser.
struct EventStream: Sendable {
    fileprivate let continuation: AsyncStream<ByteBuffer>.Continuation

    func send(_ name: String, _ body: some Encodable) {
        // All bodies are texts, numbers and flags, which JSON can hold; an event that it cannot hold is left out.
        guard let data = try? JSONEncoder.snakeCase.encode(body) else { return }
        // JSON has no line breaks, so it is one line of data.
        continuation.yield(ByteBuffer(string: "event: \(name)\ndata: \(String(decoding: data, as: UTF8.self))\n\n"))
    }
}

extension Request {
    /// Answers with the events that `produce` sends.
    ///
    /// `produce` is cancelled when the browser closes the connection (the page's Stop button, or a closed page) and
    /// when the process shuts down. Its events wait in memory, so a slow browser does not delay it.
    func eventStream(_ produce: @escaping @Sendable (EventStream) async -> Void) -> Response {
        let requestBody = body
        let responseBody = ResponseBody { writer in
            let (events, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
            let producer = Task {
                await cancelWhenGracefulShutdown { await produce(EventStream(continuation: continuation)) }
                continuation.finish()
            }
            defer { producer.cancel() }
            // How long a browser waits before it reconnects.
            try await writer.write(ByteBuffer(string: "retry: 1000\n\n"))
            try await requestBody.consumeWithInboundCloseHandler { _ in
                for await event in events { try await writer.write(event) }
            } onInboundClosed: {
                producer.cancel()
            }
            try await writer.finish(nil)
        }
        // To notice the browser's end, the connection is read to its end: it serves no other request.
        let headers: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "no-store", .connection: "close"]
        return Response(status: .ok, headers: headers, body: responseBody)
    }
}
