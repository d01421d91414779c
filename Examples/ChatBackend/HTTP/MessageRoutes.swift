import Foundation
import HTTPTypes
import HeadroomClient
import Hummingbird

/// `POST /users/{user}/messages`: a message, answered as server-sent events.
struct MessageRoutes {
    let conversations: Conversations
    let exchange: Exchange

    static let textCharactersMaximum = 4_000
    /// A character may have any number of bytes: whoever wants can put a thousand accents on one.
    static let textBytesMaximum = 4 * textCharactersMaximum

    private struct Body: Decodable {
        var id: String
        var text: String
    }

    func add(to router: Router<ChatContext>) {
        router.post("/users/{user}/messages") { request, context in try await send(request, context) }
    }

    private func send(_ request: Request, _ context: ChatContext) async throws -> Response {
        guard let user = context.user else { throw Problem.noUser }
        let body = try await BodyDecoder.read(
            Body.self,
            request,
            context,
            expected: "{\"id\": a UUID, \"text\": a text}"
        )
        let message = try message(body)
        let exchange = exchange
        switch conversations.begin(message, of: user) {
        case .turn(let turn):
            return context.answer { exchange.events(answering: turn) }
        case .answered(let answer):
            return context.answer { exchange.events(repeating: answer, of: user) }
        case .underWay:
            throw Problem(status: .conflict, code: "UNDERWAY", message: "this message is being answered; wait for it")
        case .differs:
            throw Problem(
                status: .conflict,
                code: "CONFLICT",
                message: "this id belongs to another message; take a new one"
            )
        case .tooMany:
            throw Problem.tooMany("too many messages are being answered; try again in a moment")
        }
    }

    private func message(_ body: Body) throws -> Message {
        guard let id = UUID(uuidString: body.id) else {
            throw Problem.malformed("id must be a UUID, a new one per message")
        }
        let text = body.text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard !text.isEmpty, text.count <= MessageRoutes.textCharactersMaximum else {
            throw Problem.malformed("text must have 1 to \(MessageRoutes.textCharactersMaximum) characters")
        }
        guard text.utf8.count <= MessageRoutes.textBytesMaximum else {
            throw Problem.malformed("text must have at most \(MessageRoutes.textBytesMaximum) bytes in UTF-8")
        }
        return Message(id: id.uuidString.lowercased(), role: .user, text: text)
    }
}
