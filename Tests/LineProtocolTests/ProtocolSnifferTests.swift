import Testing
import Usage

@testable import LineProtocol

@Suite("A connection's first bytes")
struct ProtocolSnifferTests {
    private static let otherProtocols: [(name: String, bytes: [UInt8])] =
        ["GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "TRACE ", "PROXY "]
        .map { ($0, Array($0.utf8)) }
        + [
            ("TLS", [0x16, 0x03]),
            ("PROXY v2", Array("\r\n\r\n\0\r\nQUIT\n".utf8)),
        ]

    @Test("Another protocol is refused at once, without waiting for the line's end", arguments: otherProtocols)
    func refused(name: String, bytes: [UInt8]) {
        for rest in ["", "/ HTTP/1.1\r\nHost: a\r\n\r\n", String(repeating: "x", count: 2_000)] {
            let whole = decode(bytes + Array(rest.utf8))
            #expect(whole.map(\.code) == [.protocol])
            #expect(whole.allSatisfy { $0.isFatal })
            #expect(decodeByteByByte(bytes + Array(rest.utf8)) == whole)
        }
        #expect(decode(Array(bytes.dropLast())).isEmpty)
    }

    @Test("The error names the protocol")
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

    @Test("Empty lines before another protocol do not hide it")
    func afterEmptyLines() { #expect(decode("\r\n\nGET / HTTP/1.1\r\n").map(\.code) == [.protocol]) }

    @Test("After the first request the same bytes are an ordinary bad line", arguments: otherProtocols)
    func later(name: String, bytes: [UInt8]) {
        for first in ["PING\n", "*1\r\n$4\r\nPING\r\n", "nonsense\n"] {
            let requests = decode(Array(first.utf8) + bytes + Array("\nPING\n".utf8))
            #expect(!requests.contains { $0.isFatal })
            #expect(requests.last == .command(.ping(text: nil)))
        }
    }

    @Test("A method in lower case, after a space, or within a longer word is not HTTP")
    func nearMisses() {
        for line in ["get / HTTP/1.1", " GET / HTTP/1.1", "GETS /", "GET", "PROXYING", "\u{16}"] {
            let requests = decode(line + "\nPING\n")
            #expect(requests.count == 2)
            #expect(requests.last == .command(.ping(text: nil)))
        }
    }

    @Test("Two empty lines and a bad line other than the PROXY signature are decoded as usual")
    func notTheSignature() {
        let requests = decode("\r\n\r\n\0\r\nPING\n")
        #expect(requests.map(\.code) == [.badArg, nil])
        #expect(decodeByteByByte(Array("\r\n\r\n\0\r\nPING\n".utf8)) == requests)
    }

    @Test("A line with NUL is answered at once where it cannot be the signature")
    func nul() {
        for emptyLines in ["", "\r\n", "\n\r\n", "\r\n\r\n\r\n", "*0\r\n"] {
            #expect(decode(emptyLines + "\0\r\n").map(\.code) == [.badArg])
        }
    }
}
