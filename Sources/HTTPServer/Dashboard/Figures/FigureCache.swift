import Engine

/// Figures that were read lately, shared by all who look: however many pages are open, each is read once at a time, and
/// no sooner than it is old.
///
/// Nobody waits longer than a page may take. A reading of a large table goes on meanwhile, and whoever comes next finds
/// it; until then the one before is shown, with its age.
actor FigureCache<Key: Hashable & Sendable, Value: Sendable> {
    typealias Read = @Sendable (Key) async -> Result<Value, EngineError>

    private struct Entry {
        var value: Value?
        var readAt = ContinuousClock.now
        /// How long reading took: what takes longer is read less often.
        var took = Duration.zero
        var trouble: EngineError?
        var triedAt = ContinuousClock.now
    }

    private struct Waiting {
        var readers: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let read: Read
    /// Figures that are kept at most; with one more the one goes that was read longest ago.
    private let capacity: Int
    private var entries: [Key: Entry] = [:]
    private var underWay: [Key: Waiting] = [:]
    private var lastReader = 0

    init(capacity: Int, read: @escaping Read) {
        self.capacity = capacity
        self.read = read
    }

    /// - Parameters:
    ///   - lifetime: a figure that is younger is shown as it is. It is made longer for one that took long to read, so
    ///     that reading takes a fifth of the time at most.
    ///   - patience: how long to wait for a new one.
    func figure(_ key: Key, freshFor lifetime: Duration, patience: Duration) async -> Figure<Value> {
        if let entry = entries[key], entry.trouble == nil {
            let age = ContinuousClock.now - entry.readAt
            if age < max(lifetime, entry.took * 4) { return shown(entry, isRenewing: false) }
        }
        if underWay[key] == nil { begin(key) }
        await wait(for: key, patience: patience)
        guard let entry = entries[key] else { return .counting }
        return shown(entry, isRenewing: underWay[key] != nil)
    }

    /// What is known, without reading anything.
    ///
    /// - Parameter trouble: why nothing is read.
    func latest(_ key: Key, trouble: EngineError) -> Figure<Value> {
        guard let entry = entries[key], let value = entry.value else { return .missing(trouble) }
        return .known(value, age: ContinuousClock.now - entry.readAt, trouble: trouble)
    }

    private func shown(_ entry: Entry, isRenewing: Bool) -> Figure<Value> {
        if let value = entry.value {
            let age = ContinuousClock.now - entry.readAt
            return .known(value, age: age, trouble: entry.trouble, isRenewing: isRenewing)
        }
        return entry.trouble.map { .missing($0) } ?? .counting
    }

    private func begin(_ key: Key) {
        underWay[key] = Waiting()
        let read = read
        Task {
            let began = ContinuousClock.now
            let result = await read(key)
            finish(key, result, began: began)
        }
    }

    private func finish(_ key: Key, _ result: Result<Value, EngineError>, began: ContinuousClock.Instant) {
        var entry = entries[key] ?? Entry()
        entry.triedAt = .now
        switch result {
        case .success(let value):
            entry.value = value
            // A figure is at least as old as its reading.
            entry.readAt = began
            entry.took = .now - began
            entry.trouble = nil
        case .failure(let error):
            entry.trouble = error
        }
        entries[key] = entry
        if entries.count > capacity, let oldest = entries.min(by: { $0.value.triedAt < $1.value.triedAt })?.key {
            entries[oldest] = nil
        }
        let waiting = underWay.removeValue(forKey: key)
        for reader in waiting?.readers.values.map(\.self) ?? [] { reader.resume() }
    }

    private func wait(for key: Key, patience: Duration) async {
        guard underWay[key] != nil else { return }
        lastReader += 1
        let reader = lastReader
        await withCheckedContinuation { continuation in
            underWay[key]?.readers[reader] = continuation
            Task {
                try? await Task.sleep(for: patience)
                giveUp(key, reader)
            }
        }
    }

    private func giveUp(_ key: Key, _ reader: Int) {
        underWay[key]?.readers.removeValue(forKey: reader)?.resume()
    }
}
