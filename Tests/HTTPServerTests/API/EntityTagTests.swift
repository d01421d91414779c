import Foundation
import Testing

@testable import HTTPServer

@Suite("An entity tag")
struct EntityTagTests {
    private let tag = EntityTag(of: Data("body".utf8))

    @Test("is the same for the same body, and another one for another")
    func identity() {
        #expect(tag == EntityTag(of: Data("body".utf8)))
        #expect(tag != EntityTag(of: Data("body ".utf8)))
        #expect(tag.text.wholeMatch(of: /"[A-Za-z0-9_-]{22}"/) != nil)
    }

    @Test("is named by itself, weak or not, anywhere in a list, and by a star")
    func named() {
        let fields = [
            "\(tag.text)", "W/\(tag.text)", "  \(tag.text) ", "\"a\",\(tag.text)",
            "\"a,b\" ,\tW/\"c\" , \(tag.text), \"d\"",
            "*", " * ",
        ]
        for field in fields { #expect(tag.isNamed(byIfNoneMatch: field), "\(field)") }
    }

    @Test("is not named by another one, nor by what is no list of tags")
    func notNamed() {
        let inner = tag.text.dropFirst().dropLast()
        let fields = [
            "", "\"a\"", "\(inner)", "\"\(inner)", "\(inner)\"", "w/\(tag.text)", "\"a\" \(tag.text)", "x, \(tag.text)",
            "**",
            "W/*", "\"\(tag.text)\"x", ",",
        ]
        for field in fields { #expect(!tag.isNamed(byIfNoneMatch: field), "\(field)") }
    }
}
