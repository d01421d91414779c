import Foundation
import HeadroomClient
import TestSupport
import Testing

@testable import chat_backend

@Suite("Conversations are bounded")
struct ConversationsTests {
    private func exchange(
        _ conversations: Conversations,
        _ user: UserID,
        _ text: String,
        answer: String? = nil
    ) throws {
        let message = Message(id: UUID().uuidString, role: .user, text: text)
        guard case .turn(let turn) = conversations.begin(message, of: user) else {
            throw ModelError(detail: "no turn")
        }
        _ = turn.keep(answer: answer ?? "to \(text)")
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

    @Test("Of a user who writes much, less is kept, but always what was said last")
    func bytesOfUser() throws {
        let (conversations, user) = (Conversations(), UserID.random)
        let answer = String(repeating: "ö", count: Conversations.bytesMaximum.user / 8)
        for number in 0..<6 { try exchange(conversations, user, "\(number)", answer: answer) }
        #expect(conversations.messages(of: user).filter { $0.role == .user }.map(\.text) == ["3", "4", "5"])
        try exchange(conversations, user, "much", answer: String(repeating: answer, count: 9))
        #expect(conversations.messages(of: user).first?.text == "much")
        try exchange(conversations, user, "little")
        #expect(conversations.messages(of: user).map(\.text) == ["little", "to little"])
    }

    @Test("Of many users who write much, whoever wrote longest ago is forgotten")
    func bytesOfAll() throws {
        let conversations = Conversations()
        let answer = String(repeating: "x", count: Conversations.bytesMaximum.user - 10)
        let maximum = Conversations.bytesMaximum
        let users = (0..<(maximum.all / maximum.user + 20)).map { _ in UserID.random }
        for user in users { try exchange(conversations, user, "Hello", answer: answer) }
        let kept = users.filter { !conversations.messages(of: $0).isEmpty }
        #expect(kept == Array(users.suffix(kept.count)) && kept.count < users.count)
        let bytes = kept.flatMap { conversations.messages(of: $0) }.reduce(0) { $0 + $1.text.utf8.count }
        #expect(bytes <= maximum.all && bytes > maximum.all * 9 / 10)
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
