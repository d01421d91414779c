import Foundation
import Testing

@testable import HTTPServer

@Suite("An entity tag")
struct EntityTagTests {
    private let tag = EntityTag(of: Data("body".utf8))

    @Test("equal bodies have equal tags, other bodies have other tags")
    func identity() {
        #expect(tag == EntityTag(of: Data("body".utf8)))
        #expect(tag != EntityTag(of: Data("body ".utf8)))
        #expect(tag.text.wholeMatch(of: /"[A-Za-z0-9_-]{22}"/) != nil)
    }

    @Test("If-None-Match matches a strong or weak tag anywhere in a list; * matches any tag")
    func matching() {
        let fields = [
            "\(tag.text)", "W/\(tag.text)", "  \(tag.text) ", "\"a\",\(tag.text)",
            "\"a,b\" ,\tW/\"c\" , \(tag.text), \"d\"",
            "*", " * ",
        ]
        for field in fields { #expect(tag.matches(ifNoneMatch: field), "\(field)") }
    }

    @Test("If-None-Match matches no other tag and no malformed list")
    func notMatching() {
        let unquoted = tag.text.dropFirst().dropLast()
        let fields = [
            "", "\"a\"", "\(unquoted)", "\"\(unquoted)", "\(unquoted)\"", "w/\(tag.text)", "\"a\" \(tag.text)",
            "x, \(tag.text)", "**", "W/*", "\"\(tag.text)\"x", ",",
        ]
        for field in fields { #expect(!tag.matches(ifNoneMatch: field), "\(field)") }
    }
}
