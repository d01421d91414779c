import Foundation
import NIOCore

/// Reads what an API like OpenAI's streams: lines `data: {…}`, and `data: [DONE]` at the end. No I/O.
struct CompletionReading {
    /// A line that is longer is no answer, and would fill the memory.
    static let lineBytesMaximum = 262_144

    private struct Chunk: Decodable {
        struct Choice: Decodable {
            struct Delta: Decodable {
                var content: String?
            }

            var delta: Delta?
            var finishReason: String?
        }

        struct Failure: Decodable {}

        var choices: [Choice]?
        var error: Failure?
    }

    /// The API said that there is no more.
    private(set) var isComplete = false
    private let decoder = CompletionReading.makeDecoder()
    private var pending = ByteBuffer()
    /// Everything before it was looked at for a line's end, so that a long line is looked through once.
    private var scanned = 0

    /// - Returns: the pieces of the answer in what came.
    /// - Throws: `ModelError` for what is no such stream, and for an error in it.
    mutating func read(_ bytes: ByteBuffer) throws -> [String] {
        pending.writeImmutableBuffer(bytes)
        var pieces: [String] = []
        while !isComplete, let line = nextLine() {
            if let piece = try piece(in: line), !piece.isEmpty { pieces.append(piece) }
        }
        guard pending.readableBytes <= CompletionReading.lineBytesMaximum else {
            throw ModelError(detail: "the model's API sent a line that is too long")
        }
        pending.discardReadBytes()
        return pieces
    }

    private static func makeDecoder() -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return decoder
    }

    private mutating func nextLine() -> String? {
        let view = pending.readableBytesView
        guard let end = view.dropFirst(scanned).firstIndex(of: UInt8(ascii: "\n")) else {
            scanned = view.count
            return nil
        }
        let line = pending.readString(length: end - view.startIndex) ?? ""
        pending.moveReaderIndex(forwardBy: 1)
        scanned = 0
        return line.hasSuffix("\r") ? String(line.dropLast()) : line
    }

    private mutating func piece(in line: String) throws -> String? {
        // Comments, names of events and empty lines say nothing here.
        guard line.hasPrefix("data:") else { return nil }
        let data = line.dropFirst(5).drop { $0 == " " }
        if data == "[DONE]" {
            isComplete = true
            return nil
        }
        guard let chunk = try? decoder.decode(Chunk.self, from: Data(data.utf8)) else {
            throw ModelError(detail: "the model's API sent what is no chunk of a completion")
        }
        if chunk.error != nil {
            throw ModelError(detail: "the model's API told of an error in the middle of an answer")
        }
        let choice = chunk.choices?.first
        // Some never say [DONE].
        if choice?.finishReason != nil { isComplete = true }
        return choice?.delta?.content
    }
}
