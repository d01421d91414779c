import DequeModule

/// Shares an event loop fairly among connections that have received more requests than it decodes at once. They wait
/// here for a turn, in which some of their requests are decoded.
struct TurnQueue<Connection> {
    private var newcomers: Deque<Connection> = []
    private var returning: Deque<Connection> = []
    private var turns = 0

    /// Every eighth turn goes to `returning` first. Otherwise a flood of new connections would starve it.
    private static var turnsPerReturning: Int { 8 }

    var isEmpty: Bool { newcomers.isEmpty && returning.isEmpty }

    /// - Parameter hadTurn: whether the connection had a turn and still has requests left. Connections without a turn
    ///   go first, because most of them have sent few requests.
    mutating func append(_ connection: Connection, hadTurn: Bool) {
        if hadTurn { returning.append(connection) } else { newcomers.append(connection) }
    }

    mutating func popFirst() -> Connection? {
        turns += 1
        guard turns == TurnQueue.turnsPerReturning else { return newcomers.popFirst() ?? returning.popFirst() }
        turns = 0
        return returning.popFirst() ?? newcomers.popFirst()
    }
}
