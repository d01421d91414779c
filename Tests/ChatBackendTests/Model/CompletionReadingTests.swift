import NIOCore
import Testing

@testable import chat_backend

@Suite("Reading a streamed completion")
struct CompletionReadingTests {
    private static let stream = """
        : a comment\r
        data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\r
        \r
        event: chunk
        data: {"choices":[{"delta":{"content":"Grüß"}}]}

        data:{"choices":[{"delta":{"content":" Gott 🙂"}}]}

        data: {"choices":[],"usage":{"total_tokens":12}}

        data: {"choices":[{"delta":{},"finish_reason":"stop"}]}

        data: [DONE]


        """

    @Test("Gives the pieces, however the bytes come", arguments: [1, 2, 3, 7, 64, 4_096])
    func pieces(size: Int) throws {
        var reading = CompletionReading()
        var bytes = ByteBuffer(string: Self.stream)
        var pieces: [String] = []
        while let chunk = bytes.readSlice(length: min(size, max(1, bytes.readableBytes))) {
            pieces += try reading.read(chunk)
        }
        #expect(pieces == ["Grüß", " Gott 🙂"])
        #expect(reading.isComplete)
    }

    @Test("What breaks off is not complete")
    func incomplete() throws {
        var reading = CompletionReading()
        #expect(try reading.read(ByteBuffer(string: "data: {\"choices\":[{\"delta\":{\"content\":\"Hel")).isEmpty)
        #expect(!reading.isComplete)
    }

    @Test(
        "What is no completion is an error, and nothing of it is told",
        arguments: ["data: {\"error\":{\"message\":\"secret\"}}\n", "data: <html>secret\n", "data: {\n"]
    )
    func broken(text: String) {
        var reading = CompletionReading()
        let error = #expect(throws: ModelError.self) { try reading.read(ByteBuffer(string: text)) }
        #expect(error?.detail.contains("secret") == false)
    }

    @Test("A line without an end is given up")
    func endless() throws {
        var reading = CompletionReading()
        let piece = ByteBuffer(repeating: UInt8(ascii: "x"), count: 65_536)
        for _ in 0..<(CompletionReading.lineBytesMaximum / 65_536) { #expect(try reading.read(piece).isEmpty) }
        #expect(throws: ModelError.self) { try reading.read(piece) }
    }
}
