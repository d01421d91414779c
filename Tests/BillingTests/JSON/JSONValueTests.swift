import TestSupport
import Testing

@testable import Billing

@Suite("JSON from outside")
struct JSONValueTests {
    private func parse(_ text: String) throws(BillingError) -> JSONValue {
        try JSONValue(parsing: Array(text.utf8))
    }

    private func refusal(of bytes: [UInt8]) -> BillingError? {
        do {
            _ = try JSONValue(parsing: bytes)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "is read as it was meant, and written so that it reads back the same",
        arguments: [
            ("{}", .object([:])), (" [ ] ", .array([])), ("\"\"", .string("")), ("null", .null),
            ("[true,false]", .array([.bool(true), .bool(false)])), ("-0", .integer(0)),
            ("9223372036854775807", .integer(.max)), ("9223372036854775808", .decimal(9_223_372_036_854_775_808)),
            ("1.5e3", .integer(1500)), ("4.99", .decimal(4.99)), ("1E-2", .decimal(0.01)),
            (#""\"\\\/\b\f\n\r\t""#, .string("\"\\/\u{8}\u{C}\n\r\t")), (#""\u00e9\uD83D\uDE00""#, .string("é😀")),
            ("\"é😀\"", .string("é😀")),
            (
                #"{"b":1,"a":{"c":[null]}}"#,
                .object(["a": .object(["c": .array([.null])]), "b": .integer(1)])
            ),
        ] as [(String, JSONValue)]
    )
    func reading(text: String, value: JSONValue) throws {
        #expect(try parse(text) == value)
        #expect(try parse(value.text) == value)
    }

    @Test(
        "is refused when it is not JSON, in words that repeat nothing of it",
        arguments: [
            "", " ", "{", "}", "[", "[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}", "{'a':1}", "tru",
            "True", "nul", "NaN", "Infinity", "+1", "01", "-", "1.", ".5", "1e", "0x10", "\"", "\"\\", "\"\\x\"",
            "\"\\u12\"", "\"\\u12G4\"", "\"\\uD83D\"", "\"\\uDE00\"", "\"\\uD83D\\u0041\"", "\"a\nb\"", "{} {}", "[]x",
            "// no\n{}", "1e999",
        ]
    )
    func malformed(text: String) throws {
        let error = try #require(refusal(of: Array(text.utf8)))
        #expect(error.kind == .malformed)
        #expect(error.description == "the body is not JSON")
    }

    @Test("is refused when it is not UTF-8", arguments: [[0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xE2, 0x82]])
    func encoding(bytes: [UInt8]) {
        #expect(refusal(of: [0x22] + bytes + [0x22])?.kind == .malformed)
    }

    @Test("is refused as too large when it nests deeper, or has more values, than any store's")
    func bounds() throws {
        let deepest = JSONBounds.depthMaximum
        let nested = { (depth: Int) in
            String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth)
        }
        _ = try parse(nested(deepest - 1))
        #expect(refusal(of: Array(nested(deepest).utf8))?.kind == .tooLarge)
        #expect(refusal(of: Array(nested(100_000).utf8))?.kind == .tooLarge)
        let objects = String(repeating: "{\"a\":", count: 50_000)
        #expect(refusal(of: Array(objects.utf8))?.kind == .tooLarge)
        let many = { (count: Int) in "[" + String(repeating: "0,", count: count - 1) + "0]" }
        _ = try parse(many(JSONBounds.valuesMaximum - 1))
        #expect(refusal(of: Array(many(JSONBounds.valuesMaximum).utf8))?.kind == .tooLarge)
    }

    @Test("cut short or with any one byte changed, it is read or refused, and never more than that")
    func mutations() {
        let seed = SeededGenerator.newSeed()
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let text = Array(#"{"event":{"id":"é\u00e9","n":[1,-2.5e3,true,null],"o":{"a":"\\"}}}"#.utf8)
        for end in 0..<text.count { #expect(refusal(of: Array(text[..<end])) != nil) }
        for _ in 0..<20_000 {
            var changed = text
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let value = try? JSONValue(parsing: changed) else { continue }
            #expect((try? JSONValue(parsing: Array(value.text.utf8))) == value)
        }
    }
}
