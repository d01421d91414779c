import NIOCore
import NIOPosix

/// Asks a service one question and reads one line; what `headroom ping` needs.
public enum LineClient {
    public struct NoAnswer: Error, CustomStringConvertible {
        public let description = "the service did not answer in time"
    }

    /// - Returns: the first line of the reply, without its line end.
    /// - Throws: `NoAnswer` after `timeout`; an I/O error when nothing listens there.
    public static func ask(_ request: String, at address: ListenAddress, timeout: Duration) async throws -> String {
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connectTimeout(.nanoseconds(timeout.nanoseconds))
            .connect(host: address.host, port: address.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: request + "\n"))
            return try await withThrowingTaskGroup(of: String?.self) { group in
                group.addTask { try await firstLine(of: inbound) }
                group.addTask {
                    try await Task.sleep(for: timeout)
                    return nil
                }
                defer { group.cancelAll() }
                guard let line = try await group.next() ?? nil else { throw NoAnswer() }
                return line
            }
        }
    }

    private static func firstLine(of inbound: NIOAsyncChannelInboundStream<ByteBuffer>) async throws -> String? {
        var received = ByteBuffer()
        for try await var bytes in inbound {
            received.writeBuffer(&bytes)
            if let end = received.readableBytesView.firstIndex(of: UInt8(ascii: "\r")) {
                return received.getString(at: received.readerIndex, length: end - received.readerIndex)
            }
        }
        return nil
    }
}

extension Duration {
    fileprivate var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
