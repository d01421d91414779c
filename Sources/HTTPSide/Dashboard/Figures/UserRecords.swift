import Usage

/// What is on record about a user beside usage: subscriptions, what stores told, and what was changed by whom.
struct UserRecords: Sendable, Equatable {
    struct Subscription: Sendable, Equatable {
        var transaction: String
        var plan: String
        var startedAt: Instant?
        var expiresAt: Instant?
        var graceUntil: Instant?
        var billingIssueAt: Instant?
        var unsubscribedAt: Instant?
        var revokedAt: Instant?
        var product: String?
        var nextPlan: String?
    }

    struct Event: Sendable, Equatable {
        var at: Instant
        var source: String
        var kind: String
        var outcome: String
        var plan: String?
        var product: String?
        var expiresAt: Instant?
        /// Why it could not be applied.
        var problem: String?
    }

    struct Change: Sendable, Equatable {
        var at: Instant
        var what: String
        var detail: String?
        var actor: String?
        var reason: String?
    }

    /// Each newest first, and at most so many.
    static let listMaximum = 100

    var subscriptions: [Subscription] = []
    var events: [Event] = []
    var changes: [Change] = []

    var isEmpty: Bool { subscriptions.isEmpty && events.isEmpty && changes.isEmpty }
}

/// A UTC day's messages, all instances together.
struct DayActivity: Sendable, Equatable {
    var day: CivilDate
    var messages: Int
    /// Requests that were refused.
    var blocked: Int
}
