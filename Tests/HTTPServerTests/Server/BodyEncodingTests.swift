import HTTPTypes
import Testing

@testable import HTTPServer

@Suite("Body encoding")
struct BodyEncodingTests {
    @Test(
        "UTF-8, a subset of it, or no declared encoding is accepted",
        arguments: [
            [:], [.contentType: "application/json"], [.contentType: "application/json; charset=utf-8"],
            [.contentType: "text/plain;CHARSET=\"UTF-8\" ; x=y"], [.contentType: "application/json; charset=us-ascii"],
            [.contentType: "application/json; x=charset; charsets=utf-16"], [.contentEncoding: "identity"],
            [.contentEncoding: ""], [.contentType: ";;=; charset"],
        ] as [HTTPFields]
    )
    func accepted(fields: HTTPFields) { #expect(BodyEncoding.problem(fields) == nil) }

    @Test(
        "another declared encoding is refused with what to do",
        arguments: [
            ([.contentType: "application/json; charset=utf-16"], "UTF-8"),
            ([.contentType: "application/json;charset=UTF-32LE"], "UTF-8"),
            ([.contentType: "text/plain; charset=iso-8859-1"], "UTF-8"),
            ([.contentType: "application/json; charset=\"utf-16\""], "UTF-8"),
            ([.contentType: "application/json; charset="], "UTF-8"),
            ([.contentType: "application/json; charset=utf-8; charset=utf-16"], "UTF-8"),
            ([.contentEncoding: "gzip"], "Content-Encoding"),
            ([.contentEncoding: "GZIP, identity"], "Content-Encoding"),
            ([.contentEncoding: "identity,br"], "Content-Encoding"),
        ] as [(HTTPFields, String)]
    )
    func refused(fields: HTTPFields, text: String) throws {
        let problem = try #require(BodyEncoding.problem(fields))
        #expect(problem.status == .unsupportedMediaType)
        #expect(problem.code == "BADENCODING")
        #expect(problem.detail.contains(text))
    }

    @Test("bytes are checked to be UTF-8 without zero bytes")
    func bytes() {
        for text in ["", "a=b", "name=\u{e9}\u{1F600}"] { #expect(BodyEncoding.isUTF8(Array(text.utf8))) }
        for bytes: [UInt8] in [[0xFF], [0x61, 0], [0xC0, 0xAF], [0xFE, 0xFF, 0, 0x61]] {
            #expect(!BodyEncoding.isUTF8(bytes))
        }
    }
}
