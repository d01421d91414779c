import DequeModule

/// The requests of many connections that wait for a lane, a line for each connection. Sans-IO; part of `LaneQueue`.
///
/// Loads are filled from the lines in turn, one request of each, so that who has one request under way goes with the next
/// load beside whoever has a thousand. Fair queueing by deficit round robin, with requests for bytes: a load's time hardly
/// depends on who is in it. Within a line the order is kept, and so is that of a user's requests on one connection;
/// between connections there is none to keep, since both requests are under way.
struct FairQueue {
    private struct Origin: Hashable {
        var mailbox: Int
        var connection: Int
    }

    private struct Line {
        var origin: Origin
        var first: Int
        var last: Int
        var count: Int
    }

    /// All lines' requests stand in one array, linked by their places, so that a line needs no memory of its own.
    private struct Place {
        var request: Request
        var next: Int
    }

    private var places: [Place] = []
    private var freePlaces: [Int] = []
    private var lines: [Line] = []
    private var freeLines: [Int] = []
    private var lineOfOrigin: [Origin: Int] = [:]
    /// Lines by when their turn is, those whose next request goes with others and those whose goes alone: in one row, who
    /// is passed over for now would lose the turn to those behind, again and again.
    private var batchedTurns: Deque<Int> = []
    private var singleTurns: Deque<Int> = []
    private static let none = -1
    /// Places that are kept while nobody waits.
    private static let sparePlaces = 4_096

    private(set) var count = 0
    /// Connections that wait.
    var lineCount: Int { batchedTurns.count + singleTurns.count }
    var isEmpty: Bool { count == 0 }

    /// Requests of the connection that sent this one.
    func count(sentLike request: Request) -> Int {
        lineOfOrigin[FairQueue.origin(request)].map { lines[$0].count } ?? 0
    }

    mutating func append(_ request: Request) {
        let place = freePlaces.popLast() ?? places.count
        if place == places.count {
            places.append(Place(request: request, next: FairQueue.none))
        } else {
            places[place] = Place(request: request, next: FairQueue.none)
        }
        count += 1
        let origin = FairQueue.origin(request)
        guard let line = lineOfOrigin[origin] else {
            open(Line(origin: origin, first: place, last: place, count: 1))
            return
        }
        places[lines[line].last].next = place
        lines[line].last = place
        lines[line].count += 1
    }

    private mutating func open(_ line: Line) {
        let number = freeLines.popLast() ?? lines.count
        if number == lines.count { lines.append(line) } else { lines[number] = line }
        lineOfOrigin[line.origin] = number
        standAgain(number)
    }

    /// Moves requests that go together into the load, in turn, until it has `limit`.
    mutating func fill(_ load: inout [Request], upTo limit: Int) {
        while load.count < limit, let line = batchedTurns.popFirst() {
            load.append(removeFirst(of: line))
            standAgain(line)
        }
        if count == 0 { forget() }
    }

    /// The next request that goes alone, where one is the first of its line.
    mutating func takeSingle() -> Request? {
        guard let line = singleTurns.popFirst() else { return nil }
        let request = removeFirst(of: line)
        standAgain(line)
        if count == 0 { forget() }
        return request
    }

    /// Removes the requests whose deadline has passed. A connection's requests wait in the order of their deadlines.
    mutating func expire(at now: ContinuousClock.Instant, into expired: inout [Request]) {
        let snapshot = Array(batchedTurns) + Array(singleTurns)
        batchedTurns.removeAll(keepingCapacity: true)
        singleTurns.removeAll(keepingCapacity: true)
        for line in snapshot {
            while lines[line].count > 0, places[lines[line].first].request.deadline <= now {
                expired.append(removeFirst(of: line))
            }
            standAgain(line)
        }
        if count == 0 { forget() }
    }

    var nextDeadline: ContinuousClock.Instant? {
        let (batched, single) = (batchedTurns.lazy.map(deadline), singleTurns.lazy.map(deadline))
        return [batched.min(), single.min()].compactMap(\.self).min()
    }

    private func deadline(of line: Int) -> ContinuousClock.Instant {
        places[lines[line].first].request.deadline
    }

    /// Of a line that stands in no row.
    private mutating func removeFirst(of line: Int) -> Request {
        let place = lines[line].first
        count -= 1
        lines[line].count -= 1
        lines[line].first = places[place].next
        freePlaces.append(place)
        return places[place].request
    }

    /// At the end of the row that its next request belongs in; where there is none, the line is over.
    private mutating func standAgain(_ line: Int) {
        guard lines[line].count > 0 else {
            lineOfOrigin[lines[line].origin] = nil
            freeLines.append(line)
            return
        }
        if places[lines[line].first].request.operation.isBatched {
            batchedTurns.append(line)
        } else {
            singleTurns.append(line)
        }
    }

    /// Nobody waits: the memory of the worst moment goes back, and what is kept is used from its beginning.
    private mutating func forget() {
        let isLarge = places.count > FairQueue.sparePlaces
        places.removeAll(keepingCapacity: !isLarge)
        freePlaces.removeAll(keepingCapacity: !isLarge)
        lines.removeAll(keepingCapacity: !isLarge)
        freeLines.removeAll(keepingCapacity: !isLarge)
        if isLarge { lineOfOrigin = [:] }
    }

    private static func origin(_ request: Request) -> Origin {
        Origin(mailbox: request.returnAddress.mailbox, connection: request.returnAddress.connection)
    }
}
