import Hummingbird
import HeadroomClient

/// `POST /users/{user}/subscription`: what a store's own sheet would do.
struct SubscriptionRoutes {
    let store: Store?
    let usage: UsageReading

    private struct Body: Decodable {
        var action: Store.Action
        var plan: String?
    }

    func add(to router: Router<ChatContext>) {
        router.post("/users/{user}/subscription") { request, context -> Response in
            guard let user = context.user else { throw Problem.noUser }
            let body = try await BodyReading.read(
                Body.self,
                request,
                context,
                expected: "{\"action\": \"subscribe\", \"cancel\", \"resume\" or \"pay\", \"plan\": \"paid\" or \"pro\"}"
            )
            guard let store else {
                throw Problem(status: .badGateway, code: "WEBHOOK", message: "this chat was started without --webhook")
            }
            let product: StoreEvent.Product = body.plan == "pro" ? .pro : .premium
            let kind: StoreEvent.Kind =
                switch body.action {
                case .subscribe: .initialPurchase
                case .cancel: .cancellation
                case .resume: .uncancellation
                case .pay: .renewal
                }
            try await store.tell(StoreEvent(kind, of: product, by: user))
            return Response(status: .noContent)
        }
    }
}
