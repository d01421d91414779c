import NIOCore
import NIOEmbedded
import Testing

@testable import HTTPServer

@Suite("The peer of a connection")
struct PeerWatchTests {
    @Test("is gone when it ends its side, and when the connection ends", arguments: [true, false])
    func noticing(endsItsSide: Bool) throws {
        let watch = PeerWatch()
        let channel = EmbeddedChannel(handler: watch)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        #expect(!watch.presence.isGone)
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
        #expect(!watch.presence.isGone)
        if endsItsSide { channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
        #expect(watch.presence.isGone == endsItsSide)
        _ = try? channel.finish()
        #expect(watch.presence.isGone)
    }

    @Test("while it is there, work is done and its errors are its own")
    func here() async throws {
        let presence = PeerPresence()
        #expect(try await presence.whileHere { 1 } == 1)
        await #expect(throws: Problem.notFound) { try await presence.whileHere { throw Problem.notFound } }
        #expect(try await presence.whileHere { Task.isCancelled } == false)
    }

    @Test("cancels the work by its end, and no later work begins uncancelled")
    func gone() async throws {
        let presence = PeerPresence()
        let work = await endlessWork(of: presence)
        presence.end()
        await #expect(throws: Problem.peerIsGone) { try await work.value }
        await #expect(throws: Problem.peerIsGone) { try await presence.whileHere { try Task.checkCancellation() } }
    }

    @Test("is not what ended work that its own caller has cancelled")
    func cancelledOtherwise() async throws {
        let work = await endlessWork(of: PeerPresence())
        work.cancel()
        await #expect(throws: CancellationError.self) { try await work.value }
    }

    /// Work that has begun and ends by being cancelled alone.
    private func endlessWork(of presence: PeerPresence) async -> Task<Void, any Error> {
        let (began, begin) = AsyncStream<Void>.makeStream()
        let work = Task {
            try await presence.whileHere {
                begin.finish()
                try await Task.sleep(for: .seconds(3_600))
            }
        }
        for await _ in began {}
        return work
    }
}
