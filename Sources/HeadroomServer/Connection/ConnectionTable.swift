/// The connections of one event loop, by the number that travels with their requests and comes back with the outcomes.
///
/// A number says where in the table its connection stands, so that finding it is no search, and how many stood there
/// before: an outcome for a connection that is gone finds nobody, not whoever took its place.
struct ConnectionTable<Connection> {
    private struct Place {
        var connection: Connection?
        /// How many connections have left this place.
        var departures = 0
    }

    private var places: ContiguousArray<Place> = []
    private var free: [Int] = []

    /// Bits of a number for the place: far more than a process may have open files.
    private static var placeBits: Int { 32 }

    /// - Returns: the connection's number, which no other one gets.
    mutating func insert(_ connection: Connection) -> Int {
        let place = free.popLast() ?? places.count
        if place == places.count { places.append(Place()) }
        places[place].connection = connection
        return places[place].departures << ConnectionTable.placeBits | place
    }

    /// False when it is gone already.
    mutating func remove(_ number: Int) -> Bool {
        guard let place = place(of: number), places[place].connection != nil else { return false }
        places[place].connection = nil
        places[place].departures += 1
        free.append(place)
        return true
    }

    subscript(number: Int) -> Connection? {
        place(of: number).flatMap { places[$0].connection }
    }

    /// All of them, in no order that means anything.
    var all: [Connection] { places.compactMap(\.connection) }

    private func place(of number: Int) -> Int? {
        let place = number & (1 << ConnectionTable.placeBits - 1)
        guard places.indices.contains(place), places[place].departures == number >> ConnectionTable.placeBits else {
            return nil
        }
        return place
    }
}
