/// What replies came to.
struct Tally: Sendable {
    var replies = 0
    var allowed = 0
    var blocked = 0
    var other = 0
    private var codes: [ReplyScanner.Word: Int] = [:]

    /// A server that sends ever new codes would fill the memory.
    private static let codesMaximum = 64
    private static let furtherCodes = ReplyScanner.Word("FURTHER")

    var errorCount: Int { codes.values.reduce(0, +) }

    /// How many errors have which code.
    var errorsByCode: [String: Int] {
        Dictionary(codes.map { ($0.key.description, $0.value) }, uniquingKeysWith: +)
    }

    @inline(__always)
    mutating func count(_ reply: ReplyScanner.Reply) {
        replies += 1
        switch reply {
        case .allowed: allowed += 1
        case .blocked: blocked += 1
        case .other: other += 1
        case .error(let code): count(code, 1)
        }
    }

    mutating func add(_ more: Tally) {
        replies += more.replies
        allowed += more.allowed
        blocked += more.blocked
        other += more.other
        for (code, number) in more.codes { count(code, number) }
    }

    private mutating func count(_ code: ReplyScanner.Word, _ number: Int) {
        let isKnown = codes[code] != nil || codes.count < Tally.codesMaximum
        codes[isKnown ? code : Tally.furtherCodes, default: 0] += number
    }
}

/// What one event loop saw in one second.
struct Second: Sendable {
    var tally = Tally()
    var latencies = Latencies.none
}

/// What one event loop tells at the end.
struct WorkerResult: Sendable {
    /// What was sent while it counted.
    var requests = 0
    /// Due, and not sent because too many waited.
    var dropped = 0
    var sendLag = Latencies.none
    /// How long those that were given up on had waited by then. Without them a server that stops answering would look
    /// as fast as it was before.
    var waits = Latencies.none
    var warmup = Tally()
    /// From the first request that counts to the last one's reply, or to the end of sending if that is later.
    var seconds = 0.0
    var brokenConnections = 0
    var idleConnectionsClosed = 0
    /// Why the first of them broke.
    var breakReason: String?
}

/// What event loops tell while they run.
enum WorkerEvent: Sendable {
    case second(Int, Second)
    case finished(WorkerResult)
}
