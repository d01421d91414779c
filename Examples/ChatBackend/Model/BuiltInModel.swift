/// Needs no key and no network, and says the same to the same conversation.
struct BuiltInModel: Model {
    /// Between two words: an answer that is there at once shows nothing of how one streams.
    let pace: Duration

    func answer(to conversation: [Message]) -> AsyncThrowingStream<String, any Error> {
        let words = BuiltInModel.text(for: conversation).split(separator: " ", omittingEmptySubsequences: false)
        return .working { tell in
            for (index, word) in words.enumerated() {
                if pace > .zero { try await Task.sleep(for: pace) }
                tell.yield(index == 0 ? String(word) : " \(word)")
            }
        }
    }

    static func text(for conversation: [Message]) -> String {
        let questions = conversation.filter { $0.role == .user }
        guard let last = questions.last else { return "I'm here whenever you want to talk." }
        let said = Said(last.text)
        // By the place in the conversation, so that the same words twice have not the same answer twice.
        let choice = Int(said.fingerprint % 1_000_003) + questions.count
        let sentences = [
            pick(said.kind.openings, choice),
            said.topic.map { pick(reflections, choice / 3).replacing("{topic}", with: $0) },
            questions.dropLast().last.flatMap { Said($0.text).topic }.filter { $0 != said.topic }
                .map { pick(memories, choice / 5).replacing("{earlier}", with: $0) },
            pick(said.kind.endings, choice / 7),
        ]
        return sentences.compactMap(\.self).joined(separator: " ")
    }

    private static func pick(_ texts: [String], _ choice: Int) -> String {
        texts[choice % texts.count]
    }

    private static let reflections = [
        "What you say about “{topic}” stays with me.",
        "“{topic}” sounds like the heart of it.",
        "I keep coming back to the word “{topic}”.",
        "There is a lot in “{topic}”, more than one message holds.",
    ]
    private static let memories = [
        "It also makes me think of “{earlier}”, which you brought up before.",
        "I wonder whether it has to do with “{earlier}”.",
        "Earlier it was “{earlier}” — I haven't forgotten.",
    ]
}

/// What can be seen in a message without understanding it.
private struct Said {
    enum Kind {
        case greeting, thanks, question, statement
    }

    let kind: Kind
    /// The word that carries most, by the only measure there is here: its length.
    let topic: String?
    /// The same in each process, as a Hasher's is not. FNV-1a.
    let fingerprint: UInt64

    init(_ text: String) {
        let words = text.split { !($0.isLetter || $0.isNumber || $0 == "'" || $0 == "’") }.map(String.init)
        let first = words.first?.lowercased() ?? ""
        if words.count <= 4, ["hi", "hello", "hey", "good"].contains(first) {
            kind = .greeting
        } else if words.contains(where: { ["thanks", "thank"].contains($0.lowercased()) }) {
            kind = .thanks
        } else {
            kind = text.contains("?") ? .question : .statement
        }
        topic =
            switch kind {
            case .greeting, .thanks: nil
            case .question, .statement: words.filter { (5...30).contains($0.count) }.max { $0.count < $1.count }
            }
        fingerprint = text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }
}

extension Said.Kind {
    var openings: [String] {
        switch self {
        case .greeting:
            ["Hello! It's good to hear from you.", "Hi there. I was hoping you'd write.", "Hey, welcome back."]
        case .thanks: ["You're very welcome.", "Any time — that's what I'm here for.", "I'm glad that helped."]
        case .question:
            [
                "That's a question worth a slow answer.", "Good question. Let me think aloud with you.",
                "I don't have one answer to that, but I have a way to look at it.",
            ]
        case .statement:
            [
                "Thank you for telling me.", "I hear you.", "That says a lot in a few words.",
                "I'm with you so far.",
            ]
        }
    }

    var endings: [String] {
        switch self {
        case .greeting: ["What's on your mind today?", "How has your day been?", "Where shall we begin?"]
        case .thanks: ["Is there anything else you'd like to talk through?", "Shall we stay with it for a moment?"]
        case .question:
            [
                "What would a good answer change for you?", "If a friend asked you that, what would you say?",
                "Start with the smallest part of it: what do you already know?",
            ]
        case .statement:
            [
                "What happened next?", "How did that feel?", "What would you like to be different tomorrow?",
                "Tell me a little more, and we'll take it one step at a time.",
            ]
        }
    }
}

extension Optional {
    fileprivate func filter(_ isWanted: (Wrapped) -> Bool) -> Wrapped? {
        flatMap { isWanted($0) ? $0 : nil }
    }
}
