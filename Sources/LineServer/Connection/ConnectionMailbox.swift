import Engine
import NIOCore
import ServiceCore

/// Receives the outcomes and publications for the connections of one event loop.
///
/// @unchecked Sendable: only `deliveries`, which has its own lock, is used outside the event loop.
final class ConnectionMailbox: Mailbox, @unchecked Sendable {
    /// Both have one queue, so that a message about a user never overtakes the reply to the subscription.
    private enum Delivery {
        case completions([Completion])
        case publications([Publication])
    }

    /// The index under which the engine knows this mailbox.
    private(set) var index = 0
    var connections = ConnectionTable<LineConnectionHandler>()
    private let eventLoop: any EventLoop
    private let metrics: LoopMetrics
    private let deliveries = EventLoopQueue<Delivery>()

    init(of engine: BatchingEngine, _ metrics: LoopMetrics, _ eventLoop: any EventLoop) {
        self.metrics = metrics
        self.eventLoop = eventLoop
        index = engine.register(self)
    }

    /// Drops outcomes from now on: those of connections that were closed with requests in flight. It is called
    /// before the event loop ends, and may be called from any thread.
    func close() {
        deliveries.close()
    }

    func deliver(_ completions: consuming [Completion]) {
        enqueue(.completions(completions))
    }

    func publish(_ publications: [Publication]) {
        enqueue(.publications(publications))
    }

    private func enqueue(_ delivery: consuming Delivery) {
        deliveries.append(delivery) { eventLoop.execute { self.processDeliveries() } }
    }

    private func processDeliveries() {
        var deliveries = deliveries.removeAll()
        while let delivery = deliveries.popFirst() {
            switch consume delivery {
            case .completions(let completions): deliverOnLoop(completions)
            case .publications(let publications): publishOnLoop(publications)
            }
        }
    }

    private func publishOnLoop(_ publications: [Publication]) {
        var changed: [LineConnectionHandler] = []
        for publication in publications {
            guard let connection = connections[publication.subscriber.connection] else { continue }
            connection.push(publication.answer)
            scheduleFlush(connection, &changed)
        }
        flush(changed)
    }

    /// Delivers outcomes at once, on the event loop.
    func deliverOnLoop(_ completions: consuming [Completion]) {
        var changed: [LineConnectionHandler] = []
        let now = NIODeadline.now()
        let nowMicroseconds = LoopMetrics.microseconds(now)
        var latencySum: UInt64 = 0
        metrics.latencies.begin(second: LoopMetrics.second(now))
        for index in completions.indices {
            let address = completions[index].returnAddress
            let receivedAt = address.receivedAtMicroseconds
            if receivedAt != 0 {
                metrics.latencies.record(microseconds: nowMicroseconds &- receivedAt)
                latencySum &+= UInt64(nowMicroseconds &- receivedAt)
            }
            // Without its connection an outcome is dropped. The message stays counted; a retry with its key counts no
            // more.
            let connection = connections[address.connection]
            // The outcome is moved: a copy retains the user's entitlement, which the lane's thread uses meanwhile.
            switch exchange(&completions[index].outcome, with: .done) {
            case .answer(let answer):
                metrics.count(answer)
                connection?.complete(slot: address.slot, answer)
            case let other:
                metrics.count(other)
                connection?.complete(slot: address.slot, other)
            }
            if let connection { scheduleFlush(connection, &changed) }
        }
        metrics.latencies.addToTotal(microseconds: latencySum)
        flush(changed)
    }

    @inline(__always)
    private func scheduleFlush(_ connection: LineConnectionHandler, _ changed: inout [LineConnectionHandler]) {
        guard !connection.flushIsScheduled else { return }
        connection.flushIsScheduled = true
        changed.append(connection)
    }

    private func flush(_ changed: [LineConnectionHandler]) {
        for connection in changed {
            connection.flushIsScheduled = false
            connection.flush()
        }
    }
}
