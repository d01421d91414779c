import HeadroomClient
import Synchronization

/// What was said, in memory and bounded: an example keeps no database. A product would, and its own ids with it.
final class Conversations: Sendable {
    static let usersMaximum = 1_000
    /// Of one user, questions and answers together; the oldest are forgotten.
    static let messagesMaximum = 200
    /// Of texts in UTF-8, of one user and of all; the oldest are forgotten. All who have messages under way have room.
    static let bytesMaximum = (user: 262_144, all: 67_108_864)
    /// Messages being answered, of one user and of all.
    static let underWayMaximum = (user: 4, all: 256)

    fileprivate struct Conversation {
        var messages: [Message] = []
        var underWay: Set<String> = []
        var usedAt: UInt64 = 0
        var bytes = 0
    }

    fileprivate struct State {
        var conversations: [UserID: Conversation] = [:]
        var underWay = 0
        /// Of all conversations.
        var bytes = 0
        /// Counts uses, so that the conversation used longest ago is known without a clock.
        var uses: UInt64 = 0
    }

    private let state = Mutex(State())

    /// What is to be done with a message that has come.
    enum Beginning {
        /// It is new. While the turn is kept, nobody else answers it.
        case turn(Turn)
        /// It was answered before.
        case answered(Message)
        case underWay
        /// Its id belongs to a message with another text.
        case differs
        case tooMany
    }

    func messages(of user: UserID) -> [Message] {
        state.withLock { $0.conversations[user]?.messages ?? [] }
    }

    func begin(_ message: Message, of user: UserID) -> Beginning {
        state.withLock { state in
            var conversation = state.conversations[user] ?? Conversation()
            if let index = conversation.messages.firstIndex(where: { $0.id == message.id && $0.role == .user }) {
                guard conversation.messages[index].text == message.text else { return .differs }
                return .answered(conversation.messages[index + 1])
            }
            if conversation.underWay.contains(message.id) { return .underWay }
            let maximum = Conversations.underWayMaximum
            guard state.underWay < maximum.all, conversation.underWay.count < maximum.user else { return .tooMany }
            state.underWay += 1
            conversation.underWay.insert(message.id)
            state.uses += 1
            conversation.usedAt = state.uses
            state.conversations[user] = conversation
            state.forgetUnused()
            return .turn(Turn(self, user, message))
        }
    }

    fileprivate func end(_ turn: borrowing Turn) {
        let (user, id) = (turn.user, turn.message.id)
        state.withLock { state in
            state.underWay -= 1
            state.conversations[user]?.underWay.remove(id)
        }
    }

    fileprivate func add(_ question: Message, _ answer: Message, of user: UserID) {
        state.withLock { state in
            var conversation = state.conversations[user] ?? Conversation()
            let before = conversation.bytes
            conversation.add(question, answer)
            state.bytes += conversation.bytes - before
            state.conversations[user] = conversation
            state.forgetUnused()
        }
    }

    /// The right to answer a message, given back with the response that holds it: also with one that is never written, to a
    /// browser that is gone by then.
    final class Turn: Sendable {
        let user: UserID
        let message: Message
        private let conversations: Conversations

        fileprivate init(_ conversations: Conversations, _ user: UserID, _ message: Message) {
            self.conversations = conversations
            self.user = user
            self.message = message
        }

        deinit {
            conversations.end(self)
        }

        /// What was said, and the message at its end.
        var conversation: [Message] { conversations.messages(of: user) + [message] }

        /// Keeps the message together with its answer.
        func keep(answer: String) -> Message {
            let answer = Message(id: "\(message.id)-answer", role: .assistant, text: answer)
            conversations.add(message, answer, of: user)
            return answer
        }
    }
}

extension Conversations.Conversation {
    fileprivate mutating func add(_ question: Message, _ answer: Message) {
        messages += [question, answer]
        bytes += question.bytes + answer.bytes
        // In pairs, so that an answer never stands without its question.
        var forgotten = max(0, messages.count - Conversations.messagesMaximum)
        bytes -= messages[..<forgotten].reduce(0) { $0 + $1.bytes }
        while bytes > Conversations.bytesMaximum.user, messages.count - forgotten > 2 {
            bytes -= messages[forgotten].bytes + messages[forgotten + 1].bytes
            forgotten += 2
        }
        messages.removeFirst(forgotten)
    }
}

extension Conversations.State {
    /// Whoever has a message under way is kept; those are bounded by themselves.
    fileprivate mutating func forgetUnused() {
        while conversations.count > Conversations.usersMaximum || bytes > Conversations.bytesMaximum.all {
            let idle = conversations.filter { $0.value.underWay.isEmpty }
            guard let oldest = idle.min(by: { $0.value.usedAt < $1.value.usedAt }) else { return }
            bytes -= oldest.value.bytes
            conversations[oldest.key] = nil
        }
    }
}

extension Message {
    fileprivate var bytes: Int { text.utf8.count }
}
