import Engine

/// Caches figures for all viewers. A figure is loaded once at a time, however many pages show it.
///
/// A caller waits for a limited time; the load continues, and meanwhile pages show the previous value with its age.
actor FigureCache<Key: Hashable & Sendable, Value: Sendable> {
    typealias Load = @Sendable (Key) async -> Result<Value, EngineError>

    private struct Entry {
        var value: Value?
        var loadedAt = ContinuousClock.now
        var loadDuration = Duration.zero
        var error: EngineError?
        var attemptedAt = ContinuousClock.now
    }

    private let load: Load
    /// When exceeded, the entry whose last attempt is oldest is removed.
    private let capacity: Int
    private var entries: [Key: Entry] = [:]
    /// The callers that wait for each running load, by number.
    private var waiters: [Key: [Int: CheckedContinuation<Void, Never>]] = [:]
    private var lastWaiter = 0

    init(capacity: Int, load: @escaping Load) {
        self.capacity = capacity
        self.load = load
    }

    /// - Parameters:
    ///   - lifetime: a younger value is returned as it is. Slow loads extend it, so that loading takes at most a fifth
    ///     of the time.
    ///   - timeout: how long to wait for a newer value.
    func figure(_ key: Key, freshFor lifetime: Duration, timeout: Duration) async -> Figure<Value> {
        if let entry = entries[key], entry.error == nil {
            let age = ContinuousClock.now - entry.loadedAt
            if age < max(lifetime, entry.loadDuration * 4) { return figure(entry, isReloading: false) }
        }
        if waiters[key] == nil { startLoading(key) }
        await wait(for: key, timeout: timeout)
        guard let entry = entries[key] else { return .loading }
        return figure(entry, isReloading: waiters[key] != nil)
    }

    /// Returns the cached value and loads nothing.
    ///
    /// - Parameter error: why nothing is loaded.
    func cached(_ key: Key, error: EngineError) -> Figure<Value> {
        guard let entry = entries[key], let value = entry.value else { return .failed(error) }
        return .loaded(value, age: ContinuousClock.now - entry.loadedAt, error: error)
    }

    private func figure(_ entry: Entry, isReloading: Bool) -> Figure<Value> {
        if let value = entry.value {
            let age = ContinuousClock.now - entry.loadedAt
            return .loaded(value, age: age, error: entry.error, isReloading: isReloading)
        }
        return entry.error.map { .failed($0) } ?? .loading
    }

    private func startLoading(_ key: Key) {
        waiters[key] = [:]
        let load = load
        Task {
            let startedAt = ContinuousClock.now
            let result = await load(key)
            finish(key, result, startedAt: startedAt)
        }
    }

    private func finish(_ key: Key, _ result: Result<Value, EngineError>, startedAt: ContinuousClock.Instant) {
        var entry = entries[key] ?? Entry()
        entry.attemptedAt = .now
        switch result {
        case .success(let value):
            entry.value = value
            // The database may have read the value right after the load began.
            entry.loadedAt = startedAt
            entry.loadDuration = .now - startedAt
            entry.error = nil
        case .failure(let error):
            entry.error = error
        }
        entries[key] = entry
        if entries.count > capacity,
            let oldest = entries.min(by: { $0.value.attemptedAt < $1.value.attemptedAt })?.key
        {
            entries[oldest] = nil
        }
        for waiter in (waiters.removeValue(forKey: key) ?? [:]).values { waiter.resume() }
    }

    private func wait(for key: Key, timeout: Duration) async {
        guard waiters[key] != nil else { return }
        lastWaiter += 1
        let waiter = lastWaiter
        await withCheckedContinuation { continuation in
            waiters[key]?[waiter] = continuation
            Task {
                try? await Task.sleep(for: timeout)
                stopWaiting(for: key, waiter)
            }
        }
    }

    private func stopWaiting(for key: Key, _ waiter: Int) {
        waiters[key]?.removeValue(forKey: waiter)?.resume()
    }
}
