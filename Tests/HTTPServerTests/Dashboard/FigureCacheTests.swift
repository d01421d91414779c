import Engine
import Synchronization
import Testing

@testable import HTTPServer

@Suite("A figure")
struct FigureCacheTests {
    /// Answers when it is told to, and counts how often it was asked.
    private final class Source: Sendable {
        private typealias Asker = CheckedContinuation<Result<Int, EngineError>, Never>

        private struct State {
            var asked = 0
            var askers: [Asker] = []
            var answerers: [CheckedContinuation<Asker, Never>] = []
        }

        private let state = Mutex(State())

        var asked: Int { state.withLock { $0.asked } }

        func read() async -> Result<Int, EngineError> {
            await withCheckedContinuation { asker in
                let answerer = state.withLock { state -> CheckedContinuation<Asker, Never>? in
                    state.asked += 1
                    guard state.answerers.isEmpty else { return state.answerers.removeFirst() }
                    state.askers.append(asker)
                    return nil
                }
                answerer?.resume(returning: asker)
            }
        }

        /// Answers whoever asked, as soon as somebody has.
        func answer(_ result: Result<Int, EngineError>) async {
            let asker = await withCheckedContinuation { answerer in
                let asker = state.withLock { state -> Asker? in
                    guard state.askers.isEmpty else { return state.askers.removeFirst() }
                    state.answerers.append(answerer)
                    return nil
                }
                if let asker { answerer.resume(returning: asker) }
            }
            asker.resume(returning: result)
        }
    }

    private let source = Source()

    private func cache(capacity: Int = 8) -> FigureCache<String, Int> {
        FigureCache(capacity: capacity) { [source] _ in await source.read() }
    }

    private static let long = Duration.seconds(86_400)
    private static let away = EngineError(.unavailable, "away")

    @Test("is read once for all who look, and again when it is old")
    func shared() async {
        let cache = cache()
        async let answered: Void = source.answer(.success(7))
        async let one = cache.figure("a", freshFor: Self.long, patience: Self.long)
        async let two = cache.figure("a", freshFor: Self.long, patience: Self.long)
        let both = await [one.value, two.value]
        await answered
        #expect(both == [7, 7])
        #expect(source.asked == 1)
        #expect(await cache.figure("a", freshFor: Self.long, patience: Self.long).value == 7)
        #expect(source.asked == 1)
        async let again: Void = source.answer(.success(8))
        // It took no time to read, so that it is old at once.
        var newest: Int?
        while newest != 8 { newest = await cache.figure("a", freshFor: .zero, patience: Self.long).value }
        await again
        #expect(source.asked == 2)
    }

    @Test("that takes long is awaited for a while, and is there for who comes next")
    func patience() async {
        let cache = cache()
        guard case .counting = await cache.figure("a", freshFor: Self.long, patience: .zero) else {
            Issue.record("it cannot be known yet")
            return
        }
        await source.answer(.success(7))
        let figure = await cache.figure("a", freshFor: Self.long, patience: Self.long)
        #expect(figure.value == 7 && figure.trouble == nil)
        #expect(source.asked == 1)
    }

    @Test("that is old is shown as it was while a newer one is being read, and says so")
    func renewing() async {
        let cache = cache()
        async let answered: Void = source.answer(.success(7))
        #expect(await cache.figure("a", freshFor: Self.long, patience: Self.long).isUnderWay == false)
        await answered
        // Nobody answers, so that it stays old.
        var old = await cache.figure("a", freshFor: .zero, patience: .zero)
        while !old.isUnderWay { old = await cache.figure("a", freshFor: .zero, patience: .zero) }
        #expect(old.value == 7)
        await source.answer(.success(8))
        let fresh = await cache.figure("a", freshFor: Self.long, patience: Self.long)
        #expect(fresh.isUnderWay == false)
    }

    @Test("that cannot be read anew is shown as it was, and why")
    func trouble() async {
        let cache = cache()
        async let first: Void = source.answer(.failure(Self.away))
        guard case .missing(let error) = await cache.figure("a", freshFor: Self.long, patience: Self.long) else {
            Issue.record("nothing is known")
            return
        }
        await first
        #expect(error == Self.away)
        async let second: Void = source.answer(.success(7))
        #expect(await cache.figure("a", freshFor: Self.long, patience: Self.long).value == 7)
        await second
        let latest = await cache.latest("a", trouble: Self.away)
        #expect(latest.value == 7 && latest.trouble == Self.away)
        #expect(await cache.latest("b", trouble: Self.away).value == nil)
        #expect(source.asked == 2)
    }

    @Test("is forgotten when there are too many others")
    func capacity() async {
        let cache = cache(capacity: 2)
        for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
            async let answered: Void = source.answer(.success(value))
            #expect(await cache.figure(key, freshFor: Self.long, patience: Self.long).value == value)
            await answered
        }
        #expect(await cache.latest("a", trouble: Self.away).value == nil)
        #expect(await cache.latest("c", trouble: Self.away).value == 3)
    }
}
