import HTTPTypes
import Hummingbird
import NIOCore

/// An event as browsers read it from `text/event-stream`.
struct ServerSentEvent: Sendable {
    private let name: String
    private let data: String

    /// JSON has no line breaks of its own, so it is one line of data.
    init(_ name: String, _ body: some Encodable) {
        self.name = name
        data = String(decoding: JSONAnswer.data(body), as: UTF8.self)
    }

    var bytes: ByteBuffer { ByteBuffer(string: "event: \(name)\ndata: \(data)\n\n") }

    /// Keeps whoever stands between from closing what seems idle.
    static let comment = ByteBuffer(string: ":\n\n")
    /// How long a browser that lost its stream waits before it comes back.
    static let retry = ByteBuffer(string: "retry: 1000\n\n")
}

extension Request {
    /// Answers with events for as long as the browser reads. Closing the page, or the Stop button, closes the connection, and
    /// then the sequence is cancelled.
    ///
    /// - Parameter events: begun when the answer is, so that nothing runs for a browser that is gone by then.
    func answer<Events: AsyncSequence>(
        beginning: ByteBuffer? = nil,
        _ events: @escaping @Sendable () -> Events
    ) -> Response where Events.Element: ServerSentBytes, Events.Failure == Never {
        let requestBody = body
        let responseBody = ResponseBody { writer in
            do {
                try await requestBody.consumeWithCancellationOnInboundClose { _ in
                    if let beginning { try await writer.write(beginning) }
                    for await event in events() { try await writer.write(event.bytes) }
                }
            } catch is CancellationError {
                // The browser is gone, or the chat shuts down: nobody reads an end.
                return
            }
            try await writer.finish(nil)
        }
        // Reading on is how the browser's end is noticed, so nothing can come after this answer.
        let fields: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "no-store", .connection: "close"]
        return Response(status: .ok, headers: fields, body: responseBody)
    }
}

/// What can be written to a stream of events.
protocol ServerSentBytes {
    var bytes: ByteBuffer { get }
}

extension ServerSentEvent: ServerSentBytes {}

extension ByteBuffer: ServerSentBytes {
    var bytes: ByteBuffer { self }
}
