import Foundation
import HeadroomClient
import ServiceTestSupport
import Testing

@testable import chat_backend

@Suite("Conversations are bounded")
struct ConversationsTests {
    private func exchange(_ conversations: Conversations, _ user: UserID, _ text: String) throws {
        let message = Message(id: UUID().uuidString, role: .user, text: text)
        guard case .turn(let turn) = conversations.begin(message, of: user) else {
            throw ModelError(detail: "no turn")
        }
        _ = turn.keep(answer: "to \(text)")
    }

    @Test("The oldest messages of a user are forgotten, a question with its answer")
    func messages() throws {
        let (conversations, user) = (Conversations(), UserID.random)
        let pairs = Conversations.messagesMaximum / 2
        for number in 0...pairs { try exchange(conversations, user, "\(number)") }
        let kept = conversations.messages(of: user)
        #expect(kept.count == Conversations.messagesMaximum)
        #expect(kept.first?.text == "1" && kept.first?.role == .user)
        #expect(kept.last?.text == "to \(pairs)")
    }

    @Test("Whoever wrote longest ago is forgotten, but nobody who is being answered")
    func users() throws {
        let conversations = Conversations()
        let (answered, oldest) = (UserID.random, UserID.random)
        let message = Message(id: "first", role: .user, text: "Are you there?")
        guard case .turn(let turn) = conversations.begin(message, of: answered) else {
            Issue.record("no turn")
            return
        }
        try exchange(conversations, oldest, "old")
        for _ in 0..<Conversations.usersMaximum { try exchange(conversations, .random, "new") }
        #expect(conversations.messages(of: oldest).isEmpty)
        _ = turn.keep(answer: "I am")
        #expect(conversations.messages(of: answered).map(\.text) == ["Are you there?", "I am"])
    }

    @Test("A turn that is dropped lets the message be sent again")
    func dropped() {
        let (conversations, user) = (Conversations(), UserID.random)
        let message = Message(id: "one", role: .user, text: "Hello")
        for _ in 0..<10 {
            guard case .turn = conversations.begin(message, of: user) else {
                Issue.record("no turn")
                return
            }
        }
        #expect(conversations.messages(of: user).isEmpty)
    }
}
