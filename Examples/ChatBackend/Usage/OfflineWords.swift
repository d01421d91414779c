import HeadroomClient

/// What a user reads while Headroom cannot be asked.
enum OfflineWords {
    static func text(_ policy: UnreachablePolicy) -> String {
        switch policy {
        case .allow: "I couldn't check your usage right now — don't worry, you can keep chatting."
        case .deny: "I can't check your usage right now — I'll keep your message and send it as soon as I can."
        }
    }
}
