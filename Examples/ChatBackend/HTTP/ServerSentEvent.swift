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

extension ChatContext {
    /// Answers with events until there are no more, or until the browser is gone.
    ///
    /// - Parameters:
    ///   - beginning: written before anything else.
    ///   - begin: called when the answer is written, so that nothing runs for a browser that is gone by then.
    ///   - bytes: of an event.
    func answer<Event: Sendable>(
        beginning: ByteBuffer? = nil,
        _ begin: @escaping @Sendable () -> BeingTold<Event>,
        bytes: @escaping @Sendable (Event, _ told: Event?) -> ByteBuffer
    ) -> Response {
        let channel = channel
        let body = ResponseBody { writer in
            if let beginning { try await writer.write(beginning) }
            let events = begin()
            channel.browserEnded().whenComplete { _ in events.stop() }
            var told: Event?
            for await event in events {
                let bytes = bytes(event, told)
                if bytes.readableBytes > 0 { try await writer.write(bytes) }
                told = event
            }
            try await writer.finish(nil)
        }
        // The connection is what tells of the browser's end, so nothing comes after this answer.
        let fields: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "no-store", .connection: "close"]
        return Response(status: .ok, headers: fields, body: body)
    }

    func answer(_ begin: @escaping @Sendable () -> BeingTold<ServerSentEvent>) -> Response {
        answer(begin) { event, _ in event.bytes }
    }
}
