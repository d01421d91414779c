/// Why a subscription connection was replaced.
enum SubscriptionFailure: Error, CustomStringConvertible {
    case unanswered
    case tokenRefused

    var description: String {
        switch self {
        case .unanswered: "a subscription was not answered in time"
        case .tokenRefused: "the service no longer accepts the token"
        }
    }
}
