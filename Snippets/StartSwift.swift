// The program of docs/start-swift.md, line for line. Every build compiles it, DocumentationTests compares it with the
// page, and start_pages.py runs it.

import Foundation
import HeadroomClient

/// A line of the response; what is nil is left out.
struct Event: Encodable, Sendable {
    var piece: String?
    var banner: String?
    var refused: Bool?
}

/// Yours: the answer, in pieces.
func model(_ text: String) -> AsyncStream<String> {
    AsyncStream { continuation in
        for word in text.split(separator: " ").reversed() { continuation.yield("\(word) ") }
        continuation.finish()
    }
}

struct MessageRoute: Sendable {
    let headroom: HeadroomClient

    func post(_ text: String, from user: UserID, send: @Sendable (Event) async throws -> Void) async throws {
        do {
            let outcome = try await headroom.withHold(user, ttl: .seconds(120)) { _ in
                for await piece in model(text) { try await send(Event(piece: piece)) }
            }
            switch outcome {
            case .completed(_, let decision):
                try await send(Event(banner: decision.status.banner))
            case .blocked(let status, _):
                try await send(Event(banner: status.banner, refused: true))
            case .expired, .uncommitted:
                // The user has the answer. It is not counted (expired), or not yet (uncommitted).
                break
            }
        } catch let error as HeadroomError where error.isTransient {
            let banner = "I couldn't check your usage right now. Let's try again in a moment."
            try await send(Event(banner: banner, refused: true))
        }
    }
}

let address = CommandLine.arguments.dropFirst().first ?? "127.0.0.1:6747"
let headroom = HeadroomClient(.init(endpoints: [HeadroomClient.Endpoint(address)!]))
let route = MessageRoute(headroom: headroom)
let user = UserID(UUID())
let show: @Sendable (Event) async throws -> Void = { event in
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    print(String(decoding: try encoder.encode(event), as: UTF8.self))
}
try await route.post("is it on", from: user, send: show)
_ = try await headroom.consume(user, messages: 99)
try await route.post("is it off", from: user, send: show)
await headroom.shutDown()
