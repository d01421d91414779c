/// Why a connection with subscriptions was given up for another one.
enum SubscriptionFailure: Error, CustomStringConvertible {
    case unanswered
    case tokenRefused

    var description: String {
        switch self {
        case .unanswered: "a subscription was not answered in time"
        case .tokenRefused: "the service takes the token no longer"
        }
    }
}
