import Foundation
import TestSupport
import Testing

@testable import JSON

@Suite("Untrusted JSON")
struct JSONValueTests {
    private func parse(_ text: String) throws(JSONError) -> JSONValue {
        try JSONValue(parsing: Array(text.utf8))
    }

    private func failure(of bytes: [UInt8]) -> JSONError? {
        do {
            _ = try JSONValue(parsing: bytes)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "is parsed to the right value, and written so that it is parsed to the same",
        arguments: [
            ("{}", .object([:])), (" [ ] ", .array([])), ("\"\"", .string("")), ("null", .null),
            ("[true,false]", .array([.bool(true), .bool(false)])), ("-0", .integer(0)),
            ("9223372036854775807", .integer(.max)), ("9223372036854775808", .decimal(9_223_372_036_854_775_808)),
            ("1.5e3", .integer(1500)), ("4.99", .decimal(4.99)), ("1E-2", .decimal(0.01)), ("-0.0", .integer(0)),
            ("\u{FEFF}[]", .array([])), (#"{"a":1,"a":2}"#, .object(["a": .integer(2)])), ("-1e300", .decimal(-1e300)),
            (#""a\u0000b""#, .string("a\u{0}b")), ("9007199254740993.0", .integer(9_007_199_254_740_992)),
            (#""\"\\\/\b\f\n\r\t""#, .string("\"\\/\u{8}\u{C}\n\r\t")), (#""\u00e9\uD83D\uDE00""#, .string("é😀")),
            ("\"é😀\"", .string("é😀")),
            (#"{"b":1,"a":{"c":[null]}}"#, .object(["a": .object(["c": .array([.null])]), "b": .integer(1)])),
        ] as [(String, JSONValue)]
    )
    func reading(text: String, value: JSONValue) throws {
        #expect(try parse(text) == value)
        #expect(try parse(value.jsonText) == value)
    }

    @Test(
        "is rejected if it is not JSON, with an error that repeats nothing of it",
        arguments: [
            "", " ", "{", "}", "[", "[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}", "{'a':1}", "tru",
            "True", "nul", "NaN", "Infinity", "+1", "01", "-", "1.", ".5", "1e", "0x10", "\"", "\"\\", "\"\\x\"",
            "\"\\u12\"", "\"\\u12G4\"", "\"\\uD83D\"", "\"\\uDE00\"", "\"\\uD83D\\u0041\"", "\"a\nb\"", "{} {}", "[]x",
            "// no\n{}", "1e999", "-1e999", "1e+", "--1", "-a", "[1,]", "[,1]", "{\"a\":1,}", "{,}", "{\"a\" 1}",
            "{1:1}", "{\"a\":1 \"b\":1}", "nulls", "\u{A0}1", "\u{C}1", "[]\u{FEFF}", "\"\\u+123\"", "\"\\uD83D\\n\"",
        ]
    )
    func malformed(text: String) throws {
        let error = try #require(failure(of: Array(text.utf8)))
        #expect(error.kind == .malformed)
        #expect(error.description == "is not JSON")
    }

    private static let notUTF8: [[UInt8]] = [[0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xE2, 0x82], [0]]

    @Test("is rejected if it is not UTF-8", arguments: notUTF8)
    func encoding(bytes: [UInt8]) { #expect(failure(of: [0x22] + bytes + [0x22])?.kind == .encoding) }

    @Test(
        "is rejected in other encodings of Unicode",
        arguments: ["{}", "[1]", "1", "\"ä\"", String(repeating: "[", count: 1_000)]
    )
    func otherEncodings(text: String) {
        let marks: [(Encoding, [UInt8])] = [
            (.utf16BigEndian, [0xFE, 0xFF]), (.utf16LittleEndian, [0xFF, 0xFE]),
            (.utf32BigEndian, [0, 0, 0xFE, 0xFF]), (.utf32LittleEndian, [0xFF, 0xFE, 0, 0]),
        ]
        for (encoding, mark) in marks {
            let bytes = Array(text.data(using: encoding) ?? Data())
            #expect(failure(of: bytes)?.kind == .encoding)
            #expect(failure(of: mark + bytes)?.kind == .encoding)
        }
    }

    private typealias Encoding = String.Encoding

    @Test("is rejected as too large if it nests deeper, or has more values, than the limits")
    func bounds() throws {
        let deepest = JSONParser.depthMaximum
        let nested = { (depth: Int) in
            String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth)
        }
        _ = try parse(nested(deepest))
        #expect(failure(of: Array(nested(deepest + 1).utf8))?.kind == .tooLarge)
        #expect(failure(of: Array(nested(100_000).utf8))?.kind == .tooLarge)
        let objects = String(repeating: "{\"a\":", count: 50_000)
        #expect(failure(of: Array(objects.utf8))?.kind == .tooLarge)
        let many = { (count: Int) in "[" + String(repeating: "0,", count: count - 1) + "0]" }
        let digits = { (count: Int) in Array(String(repeating: "1", count: count).utf8) }
        _ = try JSONValue(parsing: digits(309))
        #expect(failure(of: digits(JSONParser.numberLengthMaximum))?.kind == .malformed, "larger than any number")
        #expect(failure(of: digits(100_000))?.kind == .tooLarge)
        _ = try parse(many(JSONParser.valuesMaximum - 1))
        #expect(failure(of: Array(many(JSONParser.valuesMaximum).utf8))?.kind == .tooLarge)
    }

    @Test("a cut or changed text is parsed as Foundation's decoder does, or rejected")
    func mutations() {
        let seed = SeededGenerator.newSeed()
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        // Names of different lengths, so that a change does not repeat a name: of two members with one name Foundation
        // checks only one.
        let text = Array(#"{"event":{"id":"é\u00e9","numbers":[1,-2.5e3,true,null],"o":{"a":"\\"}}}"#.utf8)
        for end in 0..<text.count { #expect(failure(of: Array(text[..<end])) != nil) }
        for _ in 0..<20_000 {
            var changed = text
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let value = try? JSONValue(parsing: changed)
            if failure(of: changed)?.kind != .encoding {
                let isRead = (try? JSONDecoder().decode(JSONValue.self, from: Data(changed))) != nil
                #expect(isRead == (value != nil), "\(String(decoding: changed, as: UTF8.self))")
            }
            guard let value else { continue }
            #expect((try? JSONValue(parsing: Array(value.jsonText.utf8))) == value)
        }
    }
}
