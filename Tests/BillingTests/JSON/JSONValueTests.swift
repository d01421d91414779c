import Foundation
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
            ("1.5e3", .integer(1500)), ("4.99", .decimal(4.99)), ("1E-2", .decimal(0.01)), ("-0.0", .integer(0)),
            ("\u{FEFF}[]", .array([])), (#"{"a":1,"a":2}"#, .object(["a": .integer(2)])), ("-1e300", .decimal(-1e300)),
            (#""a\u0000b""#, .string("a\u{0}b")), ("9007199254740993.0", .integer(9_007_199_254_740_992)),
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
            "// no\n{}", "1e999", "-1e999", "1e+", "--1", "-a", "[1,]", "[,1]", "{\"a\":1,}", "{,}", "{\"a\" 1}",
            "{1:1}", "{\"a\":1 \"b\":1}", "nulls", "\u{A0}1", "\u{C}1", "[]\u{FEFF}", "\"\\u+123\"", "\"\\uD83D\\n\"",
        ]
    )
    func malformed(text: String) throws {
        let error = try #require(refusal(of: Array(text.utf8)))
        #expect(error.kind == .malformed)
        #expect(error.description == "the body is not JSON")
    }

    private static let notUTF8: [[UInt8]] = [[0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xE2, 0x82], [0]]

    @Test("is refused when it is not UTF-8", arguments: notUTF8)
    func encoding(bytes: [UInt8]) {
        #expect(refusal(of: [0x22] + bytes + [0x22])?.kind == .encoding)
    }

    @Test(
        "is refused in the other encodings of Unicode, which a decoder may recognize",
        arguments: ["{}", "[1]", "1", "\"ä\"", String(repeating: "[", count: 1_000)]
    )
    func otherEncodings(text: String) {
        let marks: [(Encoding, [UInt8])] = [
            (.utf16BigEndian, [0xFE, 0xFF]), (.utf16LittleEndian, [0xFF, 0xFE]),
            (.utf32BigEndian, [0, 0, 0xFE, 0xFF]), (.utf32LittleEndian, [0xFF, 0xFE, 0, 0]),
        ]
        for (encoding, mark) in marks {
            let bytes = Array(text.data(using: encoding) ?? Data())
            #expect(refusal(of: bytes)?.kind == .encoding)
            #expect(refusal(of: mark + bytes)?.kind == .encoding)
        }
    }

    private typealias Encoding = String.Encoding

    @Test("is refused as too large when it nests deeper, or has more values, than any store's")
    func bounds() throws {
        let deepest = JSONParser.depthMaximum
        let nested = { (depth: Int) in
            String(repeating: "[", count: depth) + "1" + String(repeating: "]", count: depth)
        }
        _ = try parse(nested(deepest))
        #expect(refusal(of: Array(nested(deepest + 1).utf8))?.kind == .tooLarge)
        #expect(refusal(of: Array(nested(100_000).utf8))?.kind == .tooLarge)
        let objects = String(repeating: "{\"a\":", count: 50_000)
        #expect(refusal(of: Array(objects.utf8))?.kind == .tooLarge)
        let many = { (count: Int) in "[" + String(repeating: "0,", count: count - 1) + "0]" }
        let digits = { (count: Int) in Array(String(repeating: "1", count: count).utf8) }
        _ = try JSONValue(parsing: digits(309))
        #expect(refusal(of: digits(JSONParser.numberLengthMaximum))?.kind == .malformed, "larger than any number")
        #expect(refusal(of: digits(100_000))?.kind == .tooLarge)
        _ = try parse(many(JSONParser.valuesMaximum - 1))
        #expect(refusal(of: Array(many(JSONParser.valuesMaximum).utf8))?.kind == .tooLarge)
    }

    @Test("cut short or with a few bytes changed, it is read where Foundation reads it, or refused")
    func mutations() {
        let seed = SeededGenerator.newSeed()
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        // Names of different lengths, so that none becomes another: of two members with one name Foundation checks one only.
        let text = Array(#"{"event":{"id":"é\u00e9","numbers":[1,-2.5e3,true,null],"o":{"a":"\\"}}}"#.utf8)
        for end in 0..<text.count { #expect(refusal(of: Array(text[..<end])) != nil) }
        for _ in 0..<20_000 {
            var changed = text
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let value = try? JSONValue(parsing: changed)
            if refusal(of: changed)?.kind != .encoding {
                let isRead = (try? JSONDecoder().decode(JSONValue.self, from: Data(changed))) != nil
                #expect(isRead == (value != nil), "\(String(decoding: changed, as: UTF8.self))")
            }
            guard let value else { continue }
            #expect((try? JSONValue(parsing: Array(value.text.utf8))) == value)
        }
    }
}
