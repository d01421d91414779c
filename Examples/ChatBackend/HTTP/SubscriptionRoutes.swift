import HeadroomClient
import Hummingbird

/// `POST /users/{user}/subscription`: what a store's own sheet would do.
struct SubscriptionRoutes {
    /// Nil where no webhook is set.
    let store: Store?
    let usage: UsageReading

    func add(to router: Router<ChatContext>) {
        router.post("/users/{user}/subscription") { request, context -> Response in
            guard let user = context.user else { throw Problem.noUser }
            let change = try await BodyDecoder.read(
                SubscriptionChange.self,
                request,
                context,
                expected: SubscriptionChange.expected
            )
            guard let store else {
                throw Problem(
                    status: .badGateway,
                    code: "WEBHOOK",
                    message: "start the chat with --webhook to subscribe"
                )
            }
            if let event = try change.event(for: user, await usage.usage(of: user)) { try await store.tell(event) }
            return Response(status: .noContent)
        }
    }
}
