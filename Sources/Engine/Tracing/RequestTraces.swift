import Synchronization
import Tracing

/// Records where the time of requests went, for requests that belong to a trace, and for the slowest one of a batch if
/// it was slow.
///
/// Spans are made after the answer, from times that were noted before. So a request that is not traced costs nothing.
public final class RequestTraces: Sendable {
    let tracer: any Tracer
    /// The least time of a slow request, which is recorded even if it belongs to no trace; nil if none is slow.
    let slowTime: Duration?
    /// Returns the name of an error that users know.
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

    /// Notes that the request with this return address belongs to a trace. Call it before the request is enqueued.
    package func begin(_ address: ReturnAddress, in context: InstrumentationContext) {
        contexts.withLock { $0[address] = context }
    }

    /// Forgets the request. Call it once the request is answered, because one that waited in vain was in no batch.
    package func end(_ address: ReturnAddress) {
        contexts.withLock { _ = $0.removeValue(forKey: address) }
    }

    package var isEmpty: Bool { contexts.withLock { $0.isEmpty } }

    /// The traces to which the requests with these addresses belong.
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
