import Foundation
import Testing

@testable import Usage

@Suite("A text that is compared byte by byte")
struct ExactTextTests {
    /// The same letter, as one scalar and as two, and the sign of a unit that is the letter K.
    private static let equivalents = [("\u{E9}", "e\u{301}"), ("K", "\u{212A}"), ("\u{C5}", "\u{212B}")]

    @Test("differs from one with other bytes, and has another hash")
    func equivalents() {
        for (one, other) in Self.equivalents {
            #expect(one == other, "String compares by canonical equivalence")
            #expect(ExactText(one) != ExactText(other))
            #expect(Set([ExactText(one), ExactText(other), ExactText(one)]).count == 2)
            #expect((ExactText(one) < ExactText(other)) != (ExactText(other) < ExactText(one)))
        }
    }

    @Test("is a string in JSON, also as a property")
    func json() throws {
        struct Event: Codable, Hashable {
            @ExactText var id: String
            var product: ExactText?
        }
        let event = Event(id: "e\u{301}", product: "\u{E9}")
        let data = try JSONEncoder().encode(event)
        let read = try JSONDecoder().decode(Event.self, from: data)
        #expect(read == event)
        #expect(Array(read.id.utf8) == Array("e\u{301}".utf8) && read.product?.text.utf8.count == 2)
        #expect(try JSONDecoder().decode(Event.self, from: Data(#"{"id": "x"}"#.utf8)) == Event(id: "x", product: nil))
        #expect(Event(id: "\u{E9}", product: nil) != Event(id: "e\u{301}", product: nil))
    }
}
