import DequeModule

/// A queue for each connection with requests that wait for a lane. It does no I/O; it is a part of `LaneQueue`.
///
/// Batches are filled from the connections in turn, one request of each: a connection with one request waits for one
/// batch, however many requests another has. This is deficit round robin with requests for bytes, because the time of a
/// batch hardly depends on the requests in it. Requests of one connection keep their order, so those of one user on it
/// do. Between connections there is no order to keep: neither request waits for the answer to the other.
struct FairQueue {
    private struct Connection: Hashable {
        var mailbox: Int
        var number: Int
    }

    private struct Queue {
        var connection: Connection
        var first: Int
        var last: Int
        var count: Int
    }

    /// The requests of all queues are in one array, each linked to the next of its queue, so that a queue needs no
    /// memory of its own.
    private struct Node {
        var request: Request
        var next: Int
    }

    private var nodes: [Node] = []
    private var freeNodes: [Int] = []
    private var queues: [Queue] = []
    private var freeQueues: [Int] = []
    private var queueOfConnection: [Connection: Int] = [:]
    /// The queues in the order of their turns: those whose first request is batched, and those whose first is not. In
    /// one list, a queue that is skipped for now would lose its turn to those behind it again and again.
    private var batchedTurns: Deque<Int> = []
    private var unbatchedTurns: Deque<Int> = []
    private static let none = -1
    /// The number of nodes whose memory is kept while the queue is empty.
    private static let spareNodes = 4_096

    private(set) var count = 0
    /// The number of connections with waiting requests.
    var connectionCount: Int { batchedTurns.count + unbatchedTurns.count }
    var isEmpty: Bool { count == 0 }

    /// The number of waiting requests of this request's connection.
    func count(ofConnectionOf request: Request) -> Int {
        queueOfConnection[FairQueue.connection(request)].map { queues[$0].count } ?? 0
    }

    mutating func append(_ request: Request) {
        let node = freeNodes.popLast() ?? nodes.count
        if node == nodes.count {
            nodes.append(Node(request: request, next: FairQueue.none))
        } else {
            nodes[node] = Node(request: request, next: FairQueue.none)
        }
        count += 1
        let connection = FairQueue.connection(request)
        guard let queue = queueOfConnection[connection] else {
            open(Queue(connection: connection, first: node, last: node, count: 1))
            return
        }
        queues[queue].count += 1
        guard request.deadline < nodes[queues[queue].last].request.deadline else {
            nodes[queues[queue].last].next = node
            queues[queue].last = node
            return
        }
        insert(node, into: queue)
    }

    /// Inserts a node before those with later deadlines. A request is older than some that wait if another lane has
    /// handed it over, or another thread was faster.
    private mutating func insert(_ node: Int, into queue: Int) {
        let deadline = nodes[node].request.deadline
        var (previous, next) = (FairQueue.none, queues[queue].first)
        while nodes[next].request.deadline <= deadline { (previous, next) = (next, nodes[next].next) }
        nodes[node].next = next
        guard previous == FairQueue.none else {
            nodes[previous].next = node
            return
        }
        queues[queue].first = node
        guard isBatched(node) != isBatched(next) else { return }
        batchedTurns.removeAll { $0 == queue }
        unbatchedTurns.removeAll { $0 == queue }
        scheduleTurn(queue)
    }

    private func isBatched(_ node: Int) -> Bool {
        if case .batched = nodes[node].request.operation { true } else { false }
    }

    private mutating func open(_ queue: Queue) {
        let number = freeQueues.popLast() ?? queues.count
        if number == queues.count { queues.append(queue) } else { queues[number] = queue }
        queueOfConnection[queue.connection] = number
        scheduleTurn(number)
    }

    /// Moves batched requests into the batch, one of each queue in turn, until it has `limit`.
    mutating func fill(_ batch: inout [BatchedRequest], upTo limit: Int) {
        while batch.count < limit, let queue = batchedTurns.popFirst() {
            if let request = BatchedRequest(nodes[queues[queue].first].request) {
                batch.append(request)
                removeFirst(of: queue)
            }
            scheduleTurn(queue)
        }
        if count == 0 { releaseMemory() }
    }

    /// Removes the next unbatched request that is the first of its queue.
    mutating func takeUnbatched() -> UnbatchedRequest? {
        var taken: UnbatchedRequest?
        while taken == nil, let queue = unbatchedTurns.popFirst() {
            if let request = UnbatchedRequest(nodes[queues[queue].first].request) {
                taken = request
                removeFirst(of: queue)
            }
            scheduleTurn(queue)
        }
        if count == 0 { releaseMemory() }
        return taken
    }

    /// Removes all requests. Those of each connection are returned in their order.
    mutating func removeAll() -> [Request] {
        var requests: [Request] = []
        requests.reserveCapacity(count)
        while let queue = batchedTurns.popFirst() ?? unbatchedTurns.popFirst() {
            while queues[queue].count > 0 {
                requests.append(nodes[queues[queue].first].request)
                removeFirst(of: queue)
            }
            scheduleTurn(queue)
        }
        releaseMemory()
        return requests
    }

    /// Removes the requests whose deadline has passed, and adds where their outcomes are delivered.
    mutating func expire(at now: Deadline, into expired: inout [ReturnAddress]) {
        let waiting = Array(batchedTurns) + Array(unbatchedTurns)
        batchedTurns.removeAll(keepingCapacity: true)
        unbatchedTurns.removeAll(keepingCapacity: true)
        for queue in waiting {
            while queues[queue].count > 0, nodes[queues[queue].first].request.deadline <= now {
                expired.append(nodes[queues[queue].first].request.returnAddress)
                removeFirst(of: queue)
            }
            scheduleTurn(queue)
        }
        if count == 0 { releaseMemory() }
    }

    var nextDeadline: Deadline? {
        let (batched, unbatched) = (batchedTurns.lazy.map(deadline), unbatchedTurns.lazy.map(deadline))
        return [batched.min(), unbatched.min()].compactMap(\.self).min()
    }

    private func deadline(of queue: Int) -> Deadline {
        nodes[queues[queue].first].request.deadline
    }

    /// Removes the first request. The queue must be in neither list of turns.
    private mutating func removeFirst(of queue: Int) {
        let node = queues[queue].first
        count -= 1
        queues[queue].count -= 1
        queues[queue].first = nodes[node].next
        freeNodes.append(node)
    }

    /// Appends the queue to the list of turns that fits its first request. An empty queue is removed.
    private mutating func scheduleTurn(_ queue: Int) {
        guard queues[queue].count > 0 else {
            queueOfConnection[queues[queue].connection] = nil
            freeQueues.append(queue)
            return
        }
        if isBatched(queues[queue].first) { batchedTurns.append(queue) } else { unbatchedTurns.append(queue) }
    }

    /// Releases the memory that only a large backlog needed.
    private mutating func releaseMemory() {
        let isLarge = nodes.count > FairQueue.spareNodes
        nodes.removeAll(keepingCapacity: !isLarge)
        freeNodes.removeAll(keepingCapacity: !isLarge)
        queues.removeAll(keepingCapacity: !isLarge)
        freeQueues.removeAll(keepingCapacity: !isLarge)
        if isLarge { queueOfConnection = [:] }
    }

    private static func connection(_ request: Request) -> Connection {
        Connection(mailbox: request.returnAddress.mailboxIndex, number: request.returnAddress.connection)
    }
}
