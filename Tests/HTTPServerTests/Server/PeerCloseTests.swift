import NIOCore
import NIOEmbedded
import Testing

@testable import HTTPServer

@Suite("A peer that closes its connection")
struct PeerCloseTests {
    @Test("the signal closes when the peer closes its side, and when the connection ends", arguments: [true, false])
    func detection(closesItsSide: Bool) throws {
        let handler = PeerCloseHandler()
        let channel = EmbeddedChannel(handler: handler)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        #expect(!handler.signal.isClosed)
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
        #expect(!handler.signal.isClosed)
        if closesItsSide { channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
        #expect(handler.signal.isClosed == closesItsSide)
        _ = try? channel.finish()
        #expect(handler.signal.isClosed)
    }

    @Test("while the peer is connected, work completes and throws its own errors")
    func connected() async throws {
        let signal = PeerCloseSignal()
        #expect(try await signal.cancellingOnClose { 1 } == 1)
        await #expect(throws: Problem.notFound) { try await signal.cancellingOnClose { throw Problem.notFound } }
        #expect(try await signal.cancellingOnClose { Task.isCancelled } == false)
    }

    @Test("closing cancels present and later work")
    func closed() async throws {
        let signal = PeerCloseSignal()
        let work = await endlessWork(signal)
        signal.close()
        await #expect(throws: Problem.peerClosed) { try await work.value }
        await #expect(throws: Problem.peerClosed) {
            try await signal.cancellingOnClose { Issue.record("work began for a peer that is gone") }
        }
    }

    @Test("work that its caller cancels throws a cancellation error")
    func cancelledOtherwise() async throws {
        let work = await endlessWork(PeerCloseSignal())
        work.cancel()
        await #expect(throws: CancellationError.self) { try await work.value }
    }

    /// Work that has started, and ends only when it is cancelled.
    private func endlessWork(_ signal: PeerCloseSignal) async -> Task<Void, any Error> {
        let (started, start) = AsyncStream<Void>.makeStream()
        let work = Task {
            try await signal.cancellingOnClose {
                start.finish()
                try await Task.sleep(for: .seconds(3_600))
            }
        }
        for await _ in started {}
        return work
    }
}
