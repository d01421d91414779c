import Engine
import Synchronization
import Testing

@testable import HTTPServer

@Suite("The cache of figures")
struct FigureCacheTests {
    /// Answers when a test says so, and counts the requests.
    private final class Source: Sendable {
        private typealias Pending = CheckedContinuation<Result<Int, EngineError>, Never>

        private struct State {
            var requests = 0
            var pending: [Pending] = []
            var answerers: [CheckedContinuation<Pending, Never>] = []
        }

        private let state = Mutex(State())

        var requests: Int { state.withLock { $0.requests } }

        func load() async -> Result<Int, EngineError> {
            await withCheckedContinuation { pending in
                let answerer = state.withLock { state -> CheckedContinuation<Pending, Never>? in
                    state.requests += 1
                    guard state.answerers.isEmpty else { return state.answerers.removeFirst() }
                    state.pending.append(pending)
                    return nil
                }
                answerer?.resume(returning: pending)
            }
        }

        /// Answers the oldest request, or the next one.
        func answer(_ result: Result<Int, EngineError>) async {
            let pending = await withCheckedContinuation { answerer in
                let pending = state.withLock { state -> Pending? in
                    guard state.pending.isEmpty else { return state.pending.removeFirst() }
                    state.answerers.append(answerer)
                    return nil
                }
                if let pending { answerer.resume(returning: pending) }
            }
            pending.resume(returning: result)
        }
    }

    private let source = Source()

    private func cache(capacity: Int = 8) -> FigureCache<String, Int> {
        FigureCache(capacity: capacity) { [source] _ in await source.load() }
    }

    private static let long = Duration.seconds(86_400)
    private static let away = EngineError(.unavailable, "away")

    @Test("a figure is loaded once for all viewers, and again when it is old")
    func shared() async {
        let cache = cache()
        async let answered: Void = source.answer(.success(7))
        async let one = cache.figure("a", freshFor: Self.long, timeout: Self.long)
        async let two = cache.figure("a", freshFor: Self.long, timeout: Self.long)
        let both = await [one.value, two.value]
        await answered
        #expect(both == [7, 7])
        #expect(source.requests == 1)
        #expect(await cache.figure("a", freshFor: Self.long, timeout: Self.long).value == 7)
        #expect(source.requests == 1)
        async let again: Void = source.answer(.success(8))
        // With a lifetime of zero it is old at once.
        var newest: Int?
        while newest != 8 { newest = await cache.figure("a", freshFor: .zero, timeout: Self.long).value }
        await again
        #expect(source.requests == 2)
    }

    @Test("a slow load continues after a caller has stopped waiting")
    func timeout() async {
        let cache = cache()
        guard case .loading = await cache.figure("a", freshFor: Self.long, timeout: .zero) else {
            Issue.record("it cannot be loaded yet")
            return
        }
        await source.answer(.success(7))
        let figure = await cache.figure("a", freshFor: Self.long, timeout: Self.long)
        #expect(figure.value == 7 && figure.error == nil)
        #expect(source.requests == 1)
    }

    @Test("an old value is returned while a newer one is loaded")
    func reloading() async {
        let cache = cache()
        async let answered: Void = source.answer(.success(7))
        #expect(await cache.figure("a", freshFor: Self.long, timeout: Self.long).isLoading == false)
        await answered
        // Not answered, so the value stays old.
        var old = await cache.figure("a", freshFor: .zero, timeout: .zero)
        while !old.isLoading { old = await cache.figure("a", freshFor: .zero, timeout: .zero) }
        #expect(old.value == 7)
        await source.answer(.success(8))
        let fresh = await cache.figure("a", freshFor: Self.long, timeout: Self.long)
        #expect(fresh.isLoading == false)
    }

    @Test("after a failed load the old value is returned with the error")
    func failure() async {
        let cache = cache()
        async let first: Void = source.answer(.failure(Self.away))
        guard case .failed(let error) = await cache.figure("a", freshFor: Self.long, timeout: Self.long) else {
            Issue.record("nothing is loaded")
            return
        }
        await first
        #expect(error == Self.away)
        async let second: Void = source.answer(.success(7))
        #expect(await cache.figure("a", freshFor: Self.long, timeout: Self.long).value == 7)
        await second
        let cached = await cache.cached("a", error: Self.away)
        #expect(cached.value == 7 && cached.error == Self.away)
        #expect(await cache.cached("b", error: Self.away).value == nil)
        #expect(source.requests == 2)
    }

    @Test("beyond the capacity the oldest figure is removed")
    func capacity() async {
        let cache = cache(capacity: 2)
        for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
            async let answered: Void = source.answer(.success(value))
            #expect(await cache.figure(key, freshFor: Self.long, timeout: Self.long).value == value)
            await answered
        }
        #expect(await cache.cached("a", error: Self.away).value == nil)
        #expect(await cache.cached("c", error: Self.away).value == 3)
    }
}
