import AsyncHTTPClient
import Foundation
import NIOCore

/// JSON with a name, of a stream of events or by itself.
struct Event: CustomStringConvertible {
    let name: String
    let body: Data

    subscript(path: String...) -> Any? { value(path) }

    func int(_ path: String...) -> Int? { value(path) as? Int }

    func text(_ path: String...) -> String? { value(path) as? String }

    /// Whether the field is there, if only as null.
    func has(_ path: String...) -> Bool { value(path) != nil }

    private func value(_ path: [String]) -> Any? {
        var value = try? JSONSerialization.jsonObject(with: body)
        for name in path { value = (value as? [String: Any])?[name] }
        return value
    }

    var description: String { "\(name) \(String(decoding: body, as: UTF8.self))" }
}

/// Reads `text/event-stream` as a browser does.
struct EventReader {
    private var chunks: HTTPClientResponse.Body.AsyncIterator
    private var text = ""

    init(_ response: HTTPClientResponse) {
        chunks = response.body.makeAsyncIterator()
    }

    /// - Returns: nil at the end of the stream. Comments and `retry` are passed over.
    mutating func next() async throws -> Event? {
        while true {
            while let end = text.range(of: "\n\n") {
                let block = text[..<end.lowerBound]
                text = String(text[end.upperBound...])
                var (name, data) = ("", "")
                for line in block.split(separator: "\n") {
                    if line.hasPrefix("event: ") { name = String(line.dropFirst(7)) }
                    if line.hasPrefix("data: ") { data = String(line.dropFirst(6)) }
                }
                if !name.isEmpty { return Event(name: name, body: Data(data.utf8)) }
            }
            guard let chunk = try await chunks.next() else { return nil }
            text += String(buffer: chunk)
        }
    }

    /// The next event of a name, whatever comes before it.
    mutating func next(_ name: String, where isWanted: (Event) -> Bool = { _ in true }) async throws -> Event? {
        while let event = try await next() {
            if event.name == name, isWanted(event) { return event }
        }
        return nil
    }

    consuming func rest() async throws -> [Event] {
        var events: [Event] = []
        while let event = try await next() { events.append(event) }
        return events
    }
}
