import Testing

@testable import LoadGenerator

@Suite("Reply scanner")
struct ReplyScannerTests {
    typealias Reply = ReplyScanner.Reply

    private static let stream =
        "+ALLOWED user=7f1c plan=trial\r\n+BLOCKED user=7f1c reason=limit_reached\r\n+ALLOWEDLY no\r\n+OK\r\n"
        + "-UNAVAILABLE retry_ms=500 the database cannot be reached\r\n-ERR\r\n:1000\r\n$5\r\na\r\nb+\r\n$0\r\n\r\n$-1\r\n"
        + "*3\r\n:1\r\n*2\r\n$3\r\n+A-\r\n-ERR within\r\n+ALLOWED within\r\n*0\r\n*-1\r\n+\r\n+BLOCKED\r\n+ALLOWED\n"
        + "-A-CODE-OF-TWENTY-LETTERS\r\n"

    private static let replies: [Reply] = [
        .allowed, .blocked, .other, .other,
        .error(.init("UNAVAILABLE")), .error(.init("ERR")), .other, .other, .other, .other,
        .other, .other, .other, .other, .blocked, .allowed,
        .error(.init("A-CODE-OF-TWENTY-")),
    ]

    /// Scans the text in pieces of the given lengths; the rest is the last piece.
    private func scan(_ text: String, pieces: [Int] = []) throws -> [Reply] {
        var scanner = ReplyScanner()
        var replies: [Reply] = []
        var rest = Array(text.utf8)[...]
        for length in pieces + [rest.count] {
            let piece = Array(rest.prefix(length))
            rest = rest.dropFirst(length)
            try piece.withUnsafeBytes { bytes in
                var position = 0
                while let reply = try scanner.next(in: bytes, at: &position) { replies.append(reply) }
                #expect(position == bytes.count)
            }
        }
        return replies
    }

    @Test("Replies are classified by their outermost element and first word")
    func kinds() throws { #expect(try scan(Self.stream) == Self.replies) }

    @Test("The replies are the same wherever the stream is cut in two")
    func twoPieces() throws {
        for cut in 0...Self.stream.utf8.count {
            #expect(try scan(Self.stream, pieces: [cut]) == Self.replies, "cut at \(cut)")
        }
    }

    @Test("The replies are the same byte by byte")
    func singleBytes() throws {
        let pieces = Array(repeating: 1, count: Self.stream.utf8.count)
        #expect(try scan(Self.stream, pieces: pieces) == Self.replies)
    }

    @Test("A reply is complete with its last byte")
    func incomplete() throws {
        for text in ["+OK\r", "$3\r\nabc\r", "*2\r\n:1\r\n", "*1\r\n$2\r\nab", "-"] {
            #expect(try scan(text) == [], "\(text)")
        }
    }

    @Test(
        "Bytes that are not RESP2, and lengths over the limits, are errors",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n", "%1\r\n", "$abc\r\n", "$-2\r\n", "$\r\n", "*1048577\r\n", "$536870913\r\n",
            "*99999999999999999999\r\n", "*1048576\r\n*2\r\n", "+" + String(repeating: "x", count: 65_537),
        ]
    )
    func malformed(_ text: String) {
        #expect(throws: ReplyScanner.Malformed.self) { try scan(text) }
        let pieces = Array(repeating: 1, count: text.utf8.count)
        #expect(throws: ReplyScanner.Malformed.self) { try scan(text, pieces: pieces) }
    }

    @Test("A code is shown in printable ASCII")
    func codes() {
        #expect(ReplyScanner.Word("UNAVAILABLE").description == "UNAVAILABLE")
        #expect(ReplyScanner.Word("\u{1B}[2J\u{7}").description == "?[2J?")
    }
}
