import AsyncHTTPClient
import NIOCore
import NIOPosix
import TransportSecurity

/// Sends requests to one receiver, such as a backend or a collector. It follows no redirect, because the answer to a
/// POST would be lost.
package final class HTTPSender: Sendable {
    package enum Result: Sendable {
        /// - Parameter retryAfter: the header field.
        case answer(status: Int, retryAfter: String?, body: ByteBuffer)
        /// There was no answer. The text holds no secret, and is short enough for a table.
        case failure(String)
    }

    private static let connectTimeout = TimeAmount.seconds(5)
    /// The answer's body is read so that the connection can be used again. The rest of a longer one is not read.
    private static let bodyBytesMaximum = 65_536

    private let url: String
    private let timeout: Duration
    private let eventLoops: MultiThreadedEventLoopGroup
    private let client: HTTPClient

    /// - Parameters:
    ///   - connections: the most connections at the same time.
    ///   - timeout: the most time from the attempt to connect to the end of the answer.
    package init(url: String, connections: Int, timeout: Duration) {
        self.url = url
        self.timeout = timeout
        eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var options = HTTPClient.Configuration()
        options.redirectConfiguration = .disallow
        options.timeout = HTTPClient.Configuration.Timeout(connect: HTTPSender.connectTimeout, read: .none)
        options.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = connections
        // Otherwise a receiver that refuses connections is asked again and again until the timeout.
        options.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .shared(eventLoops), configuration: options)
    }

    package func close() async {
        try? await client.shutdown()
        try? await eventLoops.shutdownGracefully()
    }

    /// Sends a request. It does not throw: what failed is in the result.
    ///
    /// - Parameter fields: the header fields besides Content-Type.
    /// - Returns: nil if the task was cancelled before there was an answer.
    package func post(json body: ByteBuffer, _ fields: [(name: String, value: String)]) async -> Result? {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        for field in fields { request.headers.add(name: field.name, value: field.value) }
        request.body = .bytes(body)
        return await withinTimeout { [request] in try await self.execute(request) }
    }

    private func withinTimeout(_ execute: @escaping @Sendable () async throws -> Result) async -> Result? {
        do {
            return try await withThrowingTaskGroup(of: Result.self) { [timeout] tasks in
                tasks.addTask { try await execute() }
                tasks.addTask {
                    try await Task.sleep(for: timeout)
                    return .failure("no answer within \(timeout.components.seconds) s")
                }
                defer { tasks.cancelAll() }
                return try await tasks.next()
            }
        } catch {
            if Task.isCancelled { return nil }
            return .failure(HTTPSender.text(error))
        }
    }

    private func execute(_ request: HTTPClientRequest) async throws -> Result {
        // This timeout is longer than that of `withinTimeout`, which also bounds the reading of the body.
        let response = try await client.execute(request, timeout: TimeAmount(timeout * 2))
        var body = ByteBuffer()
        for try await var part in response.body {
            body.writeBuffer(&part)
            if body.readableBytes > HTTPSender.bodyBytesMaximum { break }
        }
        return .answer(
            status: Int(response.status.code),
            retryAfter: response.headers.first(name: "Retry-After"),
            body: body
        )
    }

    private static func text(_ error: any Error) -> String {
        let text: String
        switch error {
        case let error as HTTPClientError where error == .connectTimeout:
            text = "no connection within \(connectTimeout.nanoseconds / 1_000_000_000) s"
        case let error as HTTPClientError: text = error.shortDescription
        default: text = ConnectFailure(error).description
        }
        return String(text.prefix(200))
    }
}
