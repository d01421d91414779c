import HeadroomClient
import Hummingbird

/// `GET /users/{user}`: what the page begins with.
struct UserRoutes {
    let people: [Person]
    let conversations: Conversations
    let usage: UsageReading
    let reachability: Reachability
    let offlineWords: String
    let canSubscribe: Bool

    private struct Body: Encodable {
        var name: String
        var messages: [Message]
        var usage: UsageObject?
        var offline: String?
        var canSubscribe: Bool

        private enum CodingKeys: String, CodingKey {
            case name, messages, usage, offline, canSubscribe
        }

        /// Null is said: nobody can be asked, nothing is wrong.
        func encode(to encoder: any Encoder) throws {
            var fields = encoder.container(keyedBy: CodingKeys.self)
            try fields.encode(name, forKey: .name)
            try fields.encode(messages, forKey: .messages)
            try fields.encode(usage, forKey: .usage)
            try fields.encode(offline, forKey: .offline)
            try fields.encode(canSubscribe, forKey: .canSubscribe)
        }
    }

    func add(to router: Router<ChatContext>) {
        let names = Dictionary(uniqueKeysWithValues: people.map { ($0.user, $0.name) })
        router.get("/users/{user}") { _, context -> Response in
            guard let user = context.user else { throw Problem.noUser }
            let status = reachability.isReachable ? await usage.usage(of: user) : nil
            return JSONAnswer.response(
                Body(
                    name: names[user] ?? "You",
                    messages: conversations.messages(of: user),
                    usage: status.map { UsageObject($0) },
                    offline: status == nil ? offlineWords : nil,
                    canSubscribe: canSubscribe
                )
            )
        }
    }
}
