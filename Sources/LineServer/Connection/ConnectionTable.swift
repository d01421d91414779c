/// The connections of one event loop by number, a slot map. The number travels with a connection's requests and returns
/// with their outcomes.
///
/// A number is the index of a slot, so that a lookup is no search, and the slot's generation, so that the outcome of a
/// closed connection does not reach the next connection in its slot.
struct ConnectionTable<Connection> {
    private struct Slot {
        var connection: Connection?
        /// How many connections have left the slot.
        var generation = 0
    }

    private var slots: ContiguousArray<Slot> = []
    private var free: [Int] = []

    /// The bits of a number for the slot's index: far more than a process can have open files.
    private static var indexBits: Int { 32 }

    /// - Returns: the connection's number. It is never used again.
    mutating func insert(_ connection: Connection) -> Int {
        let index = free.popLast() ?? slots.count
        if index == slots.count { slots.append(Slot()) }
        slots[index].connection = connection
        return slots[index].generation << ConnectionTable.indexBits | index
    }

    /// Returns false when the connection is removed already.
    mutating func remove(_ number: Int) -> Bool {
        guard let index = index(of: number), slots[index].connection != nil else { return false }
        slots[index].connection = nil
        slots[index].generation += 1
        free.append(index)
        return true
    }

    subscript(number: Int) -> Connection? {
        index(of: number).flatMap { slots[$0].connection }
    }

    /// All connections, in no particular order.
    var all: [Connection] { slots.compactMap(\.connection) }

    private func index(of number: Int) -> Int? {
        let index = number & (1 << ConnectionTable.indexBits - 1)
        guard slots.indices.contains(index), slots[index].generation == number >> ConnectionTable.indexBits else {
            return nil
        }
        return index
    }
}
