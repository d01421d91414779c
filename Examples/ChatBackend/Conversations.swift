import HeadroomClient

/// One message of a conversation. Never logged.
struct Message: Sendable, Equatable, Encodable {
    enum Role: String, Sendable, Encodable {
        case user, assistant
    }

    /// Of a user's message: chosen by the page, and the same when the page sends the message again.
    let id: String
    let role: Role
    let text: String
}

/// Conversations in memory, bounded. A product keeps them in a database, together with the ids of messages.
actor Conversations {
    static let usersMaximum = 1_000
    static let messagesMaximum = 100
    static let underWayMaximum = 256

    private var messages: [UserID: [Message]] = [:]
    /// Users by the ids of the messages that are being answered.
    private var underWay: [String: UserID] = [:]

    enum Start {
        /// The message is new. The caller answers it, then calls `finish`.
        case new(conversation: [Message])
        /// The same message was answered before.
        case answered(Message)
        /// The same message, or too many others, are being answered.
        case busy
        /// The id belongs to another text.
        case conflict
    }

    func messages(of user: UserID) -> [Message] {
        messages[user] ?? []
    }

    /// Whether a message is being answered, or given back after the user stopped its answer.
    func isAnswering(_ user: UserID) -> Bool {
        underWay.values.contains(user)
    }

    func start(_ message: Message, of user: UserID) -> Start {
        let conversation = messages(of: user)
        if let index = conversation.firstIndex(where: { $0.id == message.id }) {
            return conversation[index] == message ? .answered(conversation[index + 1]) : .conflict
        }
        guard underWay.count < Conversations.underWayMaximum, underWay[message.id] == nil else { return .busy }
        underWay[message.id] = user
        return .new(conversation: conversation + [message])
    }

    func finish(_ message: Message) {
        underWay[message.id] = nil
    }

    /// Keeps a message together with its answer.
    func add(_ message: Message, answer text: String, of user: UserID) -> Message {
        let answer = Message(id: "\(message.id)-answer", role: .assistant, text: text)
        let conversation = messages(of: user) + [message, answer]
        messages[user] = Array(conversation.suffix(Conversations.messagesMaximum))
        if messages.count > Conversations.usersMaximum, let other = messages.keys.first(where: { $0 != user }) {
            messages[other] = nil
        }
        return answer
    }
}
