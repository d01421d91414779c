import Usage

/// A user that the slow path has locked, with the usage of the open period.
struct LockedUser {
    /// The snapshot before the requests.
    var snapshot: UsageSnapshot
    /// The record of headroom.entitlement as text. The usage row is written with it.
    var entitlement: String
    /// The end of the usage row's validity, if no hold ends earlier.
    var usableUntil: Instant
    /// The messages that are held, which may be more than fit into the usage row.
    var held: Int
    /// The period of the usage row that contains the open window; nil if none is open. It may be that of an earlier
    /// period or plan, from which a message moves the window.
    var windowPeriod: BillingPeriod?
    /// When the first hold ends; nil if there is none.
    var holdsEndAt: Instant?
    var hasSubscription: Bool
    var hasSubscriber: Bool
    var hasUsageRow: Bool
    /// The generation of the usage row, or of the row to insert; nil if creating the subscriber restores a spent
    /// trial's row.
    var generation: Int64?
    /// Whether the usage row is written even if no request changes it.
    var isOutdated: Bool
    /// The limit without the messages that are left in balances, with which the usage row is written; nil is unlimited.
    var plainLimit: Int?
    /// The user's balances; nil if there are none.
    var balances: [UserBalances.Balance]?
}

/// A key of `CONSUME` or `RESERVE`, as a row of `headroom.message_keys`.
struct UsedKey: Equatable {
    enum Verb: String {
        case consume = "c"
        case reserve = "r"
    }

    enum Status: String {
        case counted = "c"
        /// The messages are held until `expiresAt`.
        case held = "h"
        case released = "r"
    }

    /// The effect of a `COMMIT`.
    struct Commit: Equatable {
        /// The counted messages; the rest of what was held was given back.
        var messages: Int
        /// The allowances in its answer, which a repetition gets again.
        var allowances: Allowances
    }

    var verb: Verb
    var status: Status
    /// The user's messages that the first request took: its own times the model's weight.
    var messages: Int
    /// The allowances in the first answer, which a repetition gets again.
    var first: Allowances
    var commit: Commit?
    var createdAt: Instant
    /// The end of the hold; nil for `CONSUME`.
    var expiresAt: Instant?
    /// The generation of the usage row when it counted the messages.
    var generation: Int64?
    var period: BillingPeriod
    /// When the window opened in which the messages were counted or held; nil if the plan had none.
    var windowOpenedAt: Instant?
    /// The parts of the messages; nil if the request named none.
    var parts: KeyParts?

    /// How many of the user's messages each message of the request took.
    var weight: Int { parts?.weight ?? 1 }

    /// The messages that are counted while the status is `counted`.
    var countedMessages: Int { commit?.messages ?? messages }

    func isExpired(at now: Instant) -> Bool {
        status == .held && expiresAt.map { $0 <= now } ?? false
    }
}

/// A locked usage row of a period that is not open, in which a key was counted or held.
struct PastUsage {
    var used: Int
    /// The messages that holds reserve now.
    var held: Int
    /// The held messages in the row, which may include holds that have expired.
    var heldInRow: Int
    var limit: Int?
    var generation: Int64
    var plan: Plan?
    var state: SubscriptionState?
    var startedAt: Instant?
    var resetsAt: Instant?
    var expiresAt: Instant?
    var renews: Bool?

    /// The messages to add to the row's `released`.
    var released = 0
    var isChanged = false
}
