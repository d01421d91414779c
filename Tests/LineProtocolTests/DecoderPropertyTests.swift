import TestSupport
import Testing
import Usage

@testable import LineProtocol

@Suite("Request decoding of random bytes")
struct DecoderPropertyTests {
    private static let words = [
        "CONSUME", "check", "USAGE", "HISTORY", "SETPLAN", "GRANT", "RESETUSAGE", "FORGET", "PING", "ECHO", "HELP",
        "INFO", "QUIT", "HELLO", "CLIENT", "COMMAND", "SELECT", "GET", "PROXY", "key=a", "reason=b", "*1", "$4",
        userText, userText, userText, "paid", "trial", "2026-11", "2026-13", "0", "1", "2", "3", "01", "1000000",
        "9223372036854775808", "state=active", "anchor=31", "anchor=32", "expires=2026-12-01", "expires=never", "AUTH",
        "SETNAME", "é", "\u{85}", "🙂", "=",
    ]

    @Test("A line and an array of the same tokens are the same request", arguments: SeededGenerator.seeds)
    func framings(seed: UInt64) {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            // The first token is mostly a verb, so that not all are refused for it; never an array's header.
            var tokens = (0..<Int.random(in: 0...5, using: &generator)).map { _ in
                DecoderPropertyTests.words.randomElement(using: &generator) ?? ""
            }
            tokens.insert(DecoderPropertyTests.words[Int.random(in: 0..<17, using: &generator)], at: 0)
            let line = Array((tokens.joined(separator: " ") + "\r\n").utf8)
            #expect(decode(line) == decode(arrayRequest(tokens)), "seed \(seed), tokens \(tokens)")
        }
    }

    @Test("A stream yields the same requests however the network splits it", arguments: SeededGenerator.seeds)
    func cuts(seed: UInt64) {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let stream = DecoderPropertyTests.stream(&generator)
            let whole = decode(stream)
            #expect(decodeByteByByte(stream) == whole, "seed \(seed), stream \(stream)")
            var reads: [[UInt8]] = []
            var rest = stream[...]
            while !rest.isEmpty {
                let read = rest.prefix(Int.random(in: 1...60, using: &generator))
                reads.append(Array(read))
                rest = rest.dropFirst(read.count)
            }
            #expect(decode(reads) == whole, "seed \(seed), reads \(reads)")
        }
    }

    @Test("Random bytes yield errors and no crash", arguments: SeededGenerator.seeds)
    func garbage(seed: UInt64) {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array("*$0123456789\r\n\r\n PINGECHO\t=-\0".utf8) + [0x16, 0x03, 0xC2, 0x80, 0xED, 0xFF]
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...80, using: &generator)).map { _ in
                alphabet.randomElement(using: &generator) ?? 0
            }
            #expect(decode(bytes) == decodeByteByByte(bytes), "seed \(seed), bytes \(bytes)")
        }
    }

    /// Valid and invalid requests in both framings, some with a changed byte.
    private static func stream(_ generator: inout SeededGenerator) -> [UInt8] {
        var stream: [UInt8] = []
        for _ in 0..<Int.random(in: 1...12, using: &generator) {
            let tokens = (0..<Int.random(in: 0...4, using: &generator)).map { _ in
                words.randomElement(using: &generator) ?? ""
            }
            var bytes =
                Bool.random(using: &generator)
                ? arrayRequest(tokens) : Array((tokens.joined(separator: " ") + "\r\n").utf8)
            let isBroken = Int.random(in: 0..<8, using: &generator) == 0
            if isBroken, let index = bytes.indices.randomElement(using: &generator) {
                bytes[index] = UInt8.random(in: 0...255, using: &generator)
            }
            stream += bytes
        }
        return stream
    }
}
