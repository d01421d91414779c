import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization

/// Live numbers as server-sent events: one a second, for as long as the browser listens and may look.
final class LiveStream: Sendable {
    /// Streams at a time. Each keeps a connection, and costs a second's INFO.
    static let maximum = 64
    private static let interval = Duration.seconds(1)
    /// How often it is looked whether the stream is over: a service that shuts down gives it less than a second.
    private static let looks = 5

    private let open = Mutex(0)

    /// One of the streams that may be open. It is given back with the answer that holds it, also with one that is never
    /// written: to a browser that is gone by then, or to HEAD.
    private final class Place: Sendable {
        private let stream: LiveStream

        init?(of stream: LiveStream) {
            let isFree = stream.open.withLock { open in
                guard open < LiveStream.maximum else { return false }
                open += 1
                return true
            }
            guard isFree else { return nil }
            self.stream = stream
        }

        deinit {
            stream.open.withLock { $0 -= 1 }
        }
    }

    /// - Parameters:
    ///   - figures: asked each second.
    ///   - ending: why the stream is over; nil while it goes on.
    func response(
        figures: @escaping @Sendable () -> LiveFigures,
        ending: @escaping @Sendable () -> String?
    ) throws(Problem) -> Response {
        guard let place = Place(of: self) else { throw LiveStream.tooMany }
        let body = ResponseBody { writer in
            defer { withExtendedLifetime(place) {} }
            // Who is cut off comes back after two seconds.
            try await writer.write(ByteBuffer(string: "retry: 2000\n\n"))
            var look = 0
            while true {
                if let reason = ending() {
                    try await writer.write(ByteBuffer(string: "event: end\ndata: {\"text\":\"\(reason)\"}\n\n"))
                    break
                }
                if look % LiveStream.looks == 0 { try await writer.write(ByteBuffer(string: figures().event)) }
                look += 1
                try await Task.sleep(for: LiveStream.interval / LiveStream.looks)
            }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: "text/event-stream"], body: body)
    }

    private static let tooMany = Problem(
        .serviceUnavailable,
        code: "OVERLOADED",
        "too many pages show live numbers; close some",
        headers: [.retryAfter: "10"]
    )
}
