import Synchronization

/// Counters that one thread increments and any thread reads.
///
/// With a single writer, a relaxed load and a relaxed store are enough and compile to plain moves: a lock or an atomic
/// addition per message would cost more than what is counted.
///
/// @unchecked Sendable: the memory is allocated once and freed by deinit, and every access to it is atomic.
public final class CounterCells: @unchecked Sendable {
    public let count: Int
    @usableFromInline let cells: UnsafeMutablePointer<Atomic<UInt64>>

    public init(count: Int) {
        self.count = count
        cells = .allocate(capacity: count)
        for index in 0..<count { (cells + index).initialize(to: Atomic(0)) }
    }

    deinit {
        cells.deinitialize(count: count)
        cells.deallocate()
    }

    /// Adds to a counter. Only the one writing thread may call it: of two writers, one's addition would be lost.
    @inlinable
    @inline(__always)
    public func increment(_ index: Int) {
        add(1, to: index)
    }

    /// Adds an amount to a counter. Only the writing thread may call it.
    @inlinable
    @inline(__always)
    public func add(_ amount: UInt64, to index: Int) {
        assert(index >= 0 && index < count)
        cells[index].store(cells[index].load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    /// Replaces all counters. Only the writing thread may call it.
    public func copy(from other: CounterCells) {
        for index in 0..<count { cells[index].store(other[index], ordering: .relaxed) }
    }

    @inlinable
    public subscript(index: Int) -> UInt64 {
        assert(index >= 0 && index < count)
        return cells[index].load(ordering: .relaxed)
    }

    public var values: [UInt64] { (0..<count).map { self[$0] } }
}
