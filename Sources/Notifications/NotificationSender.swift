import AsyncHTTPClient
import Engine
import Logging
import NIOCore
import NIOPosix
import ServiceCore
import TransportSecurity

/// Sends notifications to the product's backend.
package final class NotificationSender: Sendable {
    /// At the same time.
    static let requestsMaximum = 16
    /// From the attempt to connect to the end of the answer.
    static let timeout = Duration.seconds(15)
    /// The answer's body is read so that the connection can be used again, and ignored. A longer one is not read.
    private static let bodyBytesMaximum = 65_536
    private static let agent = "Headroom/\(HeadroomVersion.current)"

    private let url: String
    private let signer: NotificationSigner
    private let eventLoops: MultiThreadedEventLoopGroup
    private let client: HTTPClient

    package init(_ configuration: NotificationConfiguration, _ signer: NotificationSigner) {
        url = configuration.url
        self.signer = signer
        eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var options = HTTPClient.Configuration()
        options.redirectConfiguration = .disallow
        options.timeout = HTTPClient.Configuration.Timeout(connect: .seconds(5), read: .none)
        options.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = NotificationSender.requestsMaximum
        // Else a receiver that refuses connections is asked again and again until the timeout.
        options.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .shared(eventLoops), configuration: options)
    }

    package func close() async {
        try? await client.shutdown()
        try? await eventLoops.shutdownGracefully()
    }

    /// Sends a request. Does not throw: what failed is in the result.
    ///
    /// - Returns: nil if the task was cancelled before there was an answer.
    func send(_ due: NotificationOutbox.Due) async -> AttemptResult? {
        do {
            return try await withThrowingTaskGroup(of: AttemptResult.self) { tasks in
                tasks.addTask { try await self.post(due) }
                tasks.addTask {
                    try await Task.sleep(for: NotificationSender.timeout)
                    return .failed(problem: "no answer within \(NotificationSender.timeout.components.seconds) s")
                }
                defer { tasks.cancelAll() }
                return try await tasks.next()
            }
        } catch {
            if Task.isCancelled { return nil }
            return .failed(problem: NotificationSender.problem(error))
        }
    }

    private func post(_ due: NotificationOutbox.Due) async throws -> AttemptResult {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "User-Agent", value: NotificationSender.agent)
        for header in signer.headers(id: due.id, sentAt: due.sentAt, body: due.body) {
            request.headers.add(name: header.name, value: header.value)
        }
        request.body = .bytes(ByteBuffer(string: due.body))
        // Longer than the timeout of `send`, which also bounds the reading of the body.
        let response = try await client.execute(request, timeout: TimeAmount(NotificationSender.timeout * 2))
        var bytes = 0
        for try await part in response.body {
            bytes += part.readableBytes
            if bytes > NotificationSender.bodyBytesMaximum { break }
        }
        return AttemptResult(
            status: Int(response.status.code),
            retryAfter: response.headers.first(name: "Retry-After")
        )
    }

    /// In words that hold no secret, short enough for a table.
    private static func problem(_ error: any Error) -> String {
        let text: String
        switch error {
        case let error as HTTPClientError where error == .connectTimeout:
            text = "no connection within 5 s"
        case let error as HTTPClientError: text = error.shortDescription
        default: text = ConnectFailure(error).description
        }
        return String(text.prefix(200))
    }
}

extension NotificationSender {
    /// Sends a signed request that is about no user.
    ///
    /// - Parameter now: seconds since 1970.
    /// - Returns: what failed; nil if it was delivered.
    package func sendTest(id: String, now: Int64, at: String) async -> String? {
        let body = #"{"type":"test","timestamp":"\#(at)","data":{}}"#
        let due = NotificationOutbox.Due(id: id, body: body, attempts: 0, sentAt: now)
        return switch await send(due) {
        case .delivered: nil
        case .failed(let problem, _): problem
        case nil: "interrupted"
        }
    }
}
