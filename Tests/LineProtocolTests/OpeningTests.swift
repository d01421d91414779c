import Testing
import Usage

@testable import LineProtocol

@Suite("A connection's first bytes")
struct OpeningTests {
    private static let foreign: [(name: String, bytes: [UInt8])] =
        ["GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "TRACE ", "PROXY "]
        .map { ($0, Array($0.utf8)) }
        + [
            ("TLS", [0x16, 0x03]),
            ("PROXY v2", Array("\r\n\r\n\0\r\nQUIT\n".utf8)),
        ]

    @Test("What speaks something else is told so at once, without waiting for a line's end", arguments: foreign)
    func told(name: String, bytes: [UInt8]) {
        for rest in ["", "/ HTTP/1.1\r\nHost: a\r\n\r\n", String(repeating: "x", count: 2_000)] {
            let whole = decode(bytes + Array(rest.utf8))
            #expect(whole.map(\.code) == [.protocol])
            #expect(whole.allSatisfy { $0.isFatal })
            #expect(decodeByteByByte(bytes + Array(rest.utf8)) == whole)
        }
        #expect(decode(Array(bytes.dropLast())).isEmpty)
    }

    @Test("The advice names what was spoken")
    func advice() throws {
        for (line, word) in [("GET / HTTP/1.1\r\n", "HTTP"), ("\u{16}\u{3}\u{1}", "TLS"), ("PROXY TCP4", "PROXY")] {
            guard case .fatal(let error) = decode(line).first else {
                Issue.record("\(word) was not refused")
                continue
            }
            #expect(error.text.contains("line protocol"))
            #expect(error.text.contains(word))
        }
    }

    @Test("Blank lines before it do not hide it")
    func afterBlankLines() {
        #expect(decode("\r\n\nGET / HTTP/1.1\r\n").map(\.code) == [.protocol])
    }

    @Test("After a first request the same beginnings are ordinary bad lines", arguments: foreign)
    func later(name: String, bytes: [UInt8]) {
        for first in ["PING\n", "*1\r\n$4\r\nPING\r\n", "nonsense\n"] {
            let requests = decode(Array(first.utf8) + bytes + Array("\nPING\n".utf8))
            #expect(!requests.contains { $0.isFatal })
            #expect(requests.last == .command(.ping(text: nil)))
        }
    }

    @Test("Lower case, a space before it, or a longer word is no HTTP")
    func nearMisses() {
        for line in ["get / HTTP/1.1", " GET / HTTP/1.1", "GETS /", "GET", "PROXYING", "\u{16}"] {
            let requests = decode(line + "\nPING\n")
            #expect(requests.count == 2)
            #expect(requests.last == .command(.ping(text: nil)))
        }
    }

    @Test("Two blank lines and a bad line that is not the PROXY signature go on as usual")
    func notTheSignature() {
        let requests = decode("\r\n\r\n\0\r\nPING\n")
        #expect(requests.map(\.code) == [.badArg, nil])
        #expect(decodeByteByByte(Array("\r\n\r\n\0\r\nPING\n".utf8)) == requests)
    }

    @Test("A NUL line is answered at once where no signature can be meant")
    func nul() {
        for blank in ["", "\r\n", "\n\r\n", "\r\n\r\n\r\n", "*0\r\n"] {
            #expect(decode(blank + "\0\r\n").map(\.code) == [.badArg])
        }
    }
}
