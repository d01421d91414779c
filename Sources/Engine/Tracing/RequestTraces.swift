import Synchronization
import Tracing

/// Records where the time of requests went: of those that belong to a trace, and of the slowest of a batch if it was
/// slow.
///
/// Spans are made after the answer, from times that were noted before. So a request that is not traced costs nothing.
public final class RequestTraces: Sendable {
    let tracer: any Tracer
    /// A request that takes at least this long is recorded, whether it belongs to a trace or not; nil: none is.
    let slowTime: Duration?
    /// What a user calls an error.
    let errorName: @Sendable (EngineError) -> String
    private let contexts = Mutex<[ReturnAddress: InstrumentationContext]>([:])

    public init(
        _ tracer: any Tracer,
        slowTime: Duration?,
        errorName: @escaping @Sendable (EngineError) -> String = { "\($0.code)" }
    ) {
        self.tracer = tracer
        self.slowTime = slowTime
        self.errorName = errorName
    }

    /// The request whose outcome goes to this address belongs to a trace. Called before it is enqueued.
    package func begin(_ address: ReturnAddress, in context: InstrumentationContext) {
        contexts.withLock { $0[address] = context }
    }

    /// Called once the request is answered: one that waited in vain was in no batch.
    package func end(_ address: ReturnAddress) {
        contexts.withLock { _ = $0.removeValue(forKey: address) }
    }

    package var isEmpty: Bool { contexts.withLock { $0.isEmpty } }

    /// The traces that the requests with these addresses belong to, if any.
    func contexts(of addresses: some Sequence<ReturnAddress>) -> [ReturnAddress: InstrumentationContext] {
        contexts.withLock { contexts in
            guard !contexts.isEmpty else { return [:] }
            var found: [ReturnAddress: InstrumentationContext] = [:]
            for address in addresses {
                if let context = contexts[address] { found[address] = context }
            }
            return found
        }
    }
}
