import AsyncHTTPClient
import Foundation
import NIOCore

/// A server-sent event, or another JSON object under a name of the test's.
struct Event: CustomStringConvertible {
    let name: String
    let body: Data

    subscript(path: String...) -> Any? { value(path) }

    func int(_ path: String...) -> Int? { value(path) as? Int }

    func text(_ path: String...) -> String? { value(path) as? String }

    /// Whether the field is present; it may be null.
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

    init(_ response: HTTPClientResponse) { chunks = response.body.makeAsyncIterator() }

    /// - Returns: nil at the end of the stream. Comments and `retry` are skipped.
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

    /// The next event of a name. Others are skipped.
    mutating func next(_ name: String, where matches: (Event) -> Bool = { _ in true }) async throws -> Event? {
        while let event = try await next() {
            if event.name == name, matches(event) { return event }
        }
        return nil
    }

    consuming func rest() async throws -> [Event] {
        var events: [Event] = []
        while let event = try await next() { events.append(event) }
        return events
    }
}
