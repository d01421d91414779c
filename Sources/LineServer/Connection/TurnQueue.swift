import DequeModule

/// The connections of an event loop that have received more requests than it decodes at once. They take turns: in a
/// turn, some of a connection's requests are decoded.
struct TurnQueue<Connection> {
    /// Connections that wait for their first turn.
    private var first: Deque<Connection> = []
    /// Connections that have had a turn and have requests left.
    private var further: Deque<Connection> = []
    private var turns = 0

    /// Of so many turns, one goes to `further`. Otherwise a flood of new connections would starve it.
    private static var turnsPerFurther: Int { 8 }

    var isEmpty: Bool { first.isEmpty && further.isEmpty }

    /// - Parameter hadTurn: whether the connection had a turn and still has requests left. Connections without a turn
    ///   go first, because most of them have sent few requests.
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
