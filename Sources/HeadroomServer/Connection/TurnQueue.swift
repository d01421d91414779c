import DequeModule

/// The connections that have received more requests than fit one turn of the event loop, in the order of their next
/// turns.
struct TurnQueue<Connection> {
    private var first: Deque<Connection> = []
    private var further: Deque<Connection> = []
    private var turns = 0

    /// One of so many turns goes to `further` first, or a flood of new connections would starve it.
    private static var turnsPerFurther: Int { 8 }

    var isEmpty: Bool { first.isEmpty && further.isEmpty }

    /// - Parameter hadTurn: whether the connection has used a turn for requests that it still has. One that has not
    ///   goes before the others, because it has mostly sent few requests.
    mutating func append(_ connection: Connection, hadTurn: Bool) {
        if hadTurn { further.append(connection) } else { first.append(connection) }
    }

    mutating func popFirst() -> Connection? {
        turns += 1
        guard turns == TurnQueue.turnsPerFurther else { return first.popFirst() ?? further.popFirst() }
        turns = 0
        return further.popFirst() ?? first.popFirst()
    }
}
