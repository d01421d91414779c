import Synchronization

/// So many at a time, and no more.
final class Places: Sendable {
    private let free: Mutex<Int>

    init(maximum: Int) {
        free = Mutex(maximum)
    }

    /// Given back with whoever holds it: a response, say, also one that is never written because its browser is gone by then.
    final class Place: Sendable {
        private let places: Places

        fileprivate init(_ places: Places) {
            self.places = places
        }

        deinit {
            places.free.withLock { $0 += 1 }
        }
    }

    /// - Returns: nil when all are taken.
    func take() -> Place? {
        let isFree = free.withLock { free in
            guard free > 0 else { return false }
            free -= 1
            return true
        }
        return isFree ? Place(self) : nil
    }
}
