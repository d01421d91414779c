/// Counts replies by kind.
struct Tally: Sendable {
    var replies = 0
    var allowed = 0
    var blocked = 0
    var other = 0
    private var codes: [ReplyScanner.Word: Int] = [:]

    /// Further codes are counted together, so that a server that keeps sending new codes does not fill the memory.
    private static let codesMaximum = 64
    private static let furtherCodes = ReplyScanner.Word("FURTHER")

    var errorCount: Int { codes.values.reduce(0, +) }

    /// The number of errors of each code.
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

/// The replies of one event loop in one second.
struct Second: Sendable {
    var tally = Tally()
    var latencies = Latencies.none
}

/// The result of one event loop at the end.
struct WorkerResult: Sendable {
    /// Measured requests.
    var requests = 0
    /// Requests not sent because too many waited for answers.
    var dropped = 0
    var sendLag = Latencies.none
    /// How long unanswered requests had waited at the end. Without them a server that stops answering would look fast.
    var waits = Latencies.none
    var warmup = Tally()
    /// The time from the first measured request to the last reply, or to the end of sending if that is later.
    var seconds = 0.0
    var brokenConnections = 0
    var idleConnectionsClosed = 0
    /// Why the first connection broke.
    var breakReason: String?
}

/// Reports of an event loop during the run.
enum WorkerEvent: Sendable {
    case second(Int, Second)
    case finished(WorkerResult)
}
