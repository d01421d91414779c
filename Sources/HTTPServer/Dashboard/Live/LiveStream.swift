import HTTPTypes
import Hummingbird
import JSON
import NIOCore
import Synchronization

/// Live numbers as server-sent events, once a second until the browser closes the stream or `endReason` ends it.
final class LiveStream: Sendable {
    /// Open streams at most. Each keeps a connection and costs one INFO a second.
    static let maximum = 64
    private static let interval = Duration.seconds(1)
    /// The end is checked more often than numbers are sent: a stream must end within the drain time of 0.5 s at least.
    private static let checksPerInterval = 5

    private let openCount = Mutex(0)

    /// Counts one open stream. It belongs to the response and is released with it, also if the response is never
    /// written, as for HEAD.
    private final class Slot: Sendable {
        private let stream: LiveStream

        init?(of stream: LiveStream) {
            let isFree = stream.openCount.withLock { count in
                guard count < LiveStream.maximum else { return false }
                count += 1
                return true
            }
            guard isFree else { return nil }
            self.stream = stream
        }

        deinit {
            stream.openCount.withLock { $0 -= 1 }
        }
    }

    private struct End: Encodable {
        var text: String
    }

    /// - Parameters:
    ///   - figures: called once a second.
    ///   - endReason: a text for the viewer once the stream has to end; nil until then.
    func response(
        figures: @escaping @Sendable () -> LiveFigures,
        endReason: @escaping @Sendable () -> String?
    ) throws(Problem) -> Response {
        guard let slot = Slot(of: self) else { throw LiveStream.tooMany }
        let body = ResponseBody { writer in
            defer { withExtendedLifetime(slot) {} }
            // A browser reconnects after two seconds.
            try await writer.write(ByteBuffer(string: "retry: 2000\n\n"))
            var check = 0
            while true {
                if let reason = endReason() {
                    try await writer.write(LiveStream.event("end", End(text: reason)))
                    break
                }
                if check % LiveStream.checksPerInterval == 0 {
                    try await writer.write(LiveStream.event("figures", figures().view))
                }
                check += 1
                try await Task.sleep(for: LiveStream.interval / LiveStream.checksPerInterval)
            }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: "text/event-stream"], body: body)
    }

    static func event(_ name: String, _ data: some Encodable) -> ByteBuffer {
        ByteBuffer(string: "event: \(name)\ndata: \(data.jsonText)\n\n")
    }

    private static let tooMany = Problem(
        .serviceUnavailable,
        code: "OVERLOADED",
        "too many pages show live numbers; close some",
        headers: [.retryAfter: "10"]
    )
}
