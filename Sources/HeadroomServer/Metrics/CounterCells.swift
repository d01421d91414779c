import Synchronization

/// Counters that one thread raises and any thread reads.
///
/// With a single writer, a relaxed load and a relaxed store are enough and compile to plain moves: a lock or an atomic
/// addition per message would cost more than what is counted.
///
/// @unchecked Sendable: the memory is allocated once and freed by deinit, and every access to it is atomic.
final class CounterCells: @unchecked Sendable {
    let count: Int
    private let cells: UnsafeMutablePointer<Atomic<UInt64>>

    init(count: Int) {
        self.count = count
        cells = .allocate(capacity: count)
        for index in 0..<count { (cells + index).initialize(to: Atomic(0)) }
    }

    deinit {
        cells.deinitialize(count: count)
        cells.deallocate()
    }

    /// By the one writing thread only: of two writers, one's addition would be lost.
    @inline(__always)
    func raise(_ index: Int) {
        assert(index >= 0 && index < count)
        cells[index].store(cells[index].load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }

    /// As `raise`, by the writing thread only.
    func copy(from other: CounterCells) {
        for index in 0..<count { cells[index].store(other[index], ordering: .relaxed) }
    }

    subscript(index: Int) -> UInt64 {
        assert(index >= 0 && index < count)
        return cells[index].load(ordering: .relaxed)
    }

    var values: [UInt64] { (0..<count).map { self[$0] } }
}
