import DequeModule

/// The requests of many connections that wait for a lane, a line for each connection. Sans-IO; part of `LaneQueue`.
///
/// Loads are filled from the lines in turn, one request of each, so that who has one request under way goes with the next
/// load beside whoever has a thousand. Fair queueing by deficit round robin, with requests for bytes: a load's time hardly
/// depends on who is in it. Within a line the order is kept, and so is that of a user's requests on one connection;
/// between connections there is none to keep, since both requests are under way.
struct FairLines {
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
    /// Lines by when their turn is.
    private var turns: Deque<Int> = []
    private static let none = -1
    /// Places that are kept while nobody waits.
    private static let sparePlaces = 4_096

    private(set) var count = 0
    /// Connections that wait.
    var lineCount: Int { turns.count }
    var isEmpty: Bool { count == 0 }

    /// Requests of the connection that sent this one.
    func count(sentLike request: Request) -> Int {
        lineOfOrigin[FairLines.origin(request)].map { lines[$0].count } ?? 0
    }

    mutating func append(_ request: Request) {
        let place = freePlaces.popLast() ?? places.count
        if place == places.count {
            places.append(Place(request: request, next: FairLines.none))
        } else {
            places[place] = Place(request: request, next: FairLines.none)
        }
        count += 1
        let origin = FairLines.origin(request)
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
        turns.append(number)
    }

    /// Moves requests that go together into the load, in turn, until it has `limit`. A line whose next request goes alone
    /// stands back until that is taken.
    mutating func fill(_ load: inout [Request], upTo limit: Int) {
        var passed = 0
        while load.count < limit, passed < turns.count {
            let line = turns[0]
            if places[lines[line].first].request.operation.isBatched {
                load.append(takeFirst(line))
                passed = 0
            } else {
                turns.append(turns.removeFirst())
                passed += 1
            }
        }
    }

    /// The next request that goes alone, where one is the first of its line.
    mutating func takeSingle() -> Request? {
        for _ in 0..<turns.count {
            let line = turns[0]
            if !places[lines[line].first].request.operation.isBatched { return takeFirst(line) }
            turns.append(turns.removeFirst())
        }
        return nil
    }

    /// Removes the requests whose deadline has passed. A connection's requests wait in the order of their deadlines.
    mutating func expire(at now: ContinuousClock.Instant, into expired: inout [Request]) {
        for _ in 0..<turns.count {
            let line = turns[0]
            var isOpen = true
            while isOpen, places[lines[line].first].request.deadline <= now {
                isOpen = lines[line].count > 1
                expired.append(takeFirst(line, keepsTurn: true))
            }
            if isOpen { turns.append(turns.removeFirst()) }
        }
    }

    var nextDeadline: ContinuousClock.Instant? {
        turns.lazy.map { places[lines[$0].first].request.deadline }.min()
    }

    /// Takes the first request of the line whose turn it is.
    private mutating func takeFirst(_ line: Int, keepsTurn: Bool = false) -> Request {
        let place = lines[line].first
        let request = places[place].request
        count -= 1
        lines[line].count -= 1
        if lines[line].count == 0 {
            turns.removeFirst()
            lineOfOrigin[lines[line].origin] = nil
            freeLines.append(line)
        } else {
            lines[line].first = places[place].next
            if !keepsTurn { turns.append(turns.removeFirst()) }
        }
        freePlaces.append(place)
        if count == 0 { forget() }
        return request
    }

    /// Nobody waits: the memory of the worst moment goes back, and what is kept is used from its beginning.
    private mutating func forget() {
        let isLarge = places.count > FairLines.sparePlaces
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
