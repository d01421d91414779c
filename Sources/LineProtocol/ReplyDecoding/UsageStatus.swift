import Usage

/// A user's usage as the typed fields of an answer.
///
/// It is derived from a `UsageSnapshot`, which has the data of the database.
public struct UsageStatus: Sendable, Hashable {
    public var user: UserID
    /// The plan's name; `label` is its label for users.
    public var plan: String
    public var state: SubscriptionState
    public var tier: Tier
    /// How to show the counter.
    public var display: Display
    /// Messages counted in this period.
    public var used: Int
    /// Messages reserved and not committed yet; they count as used.
    public var held = 0
    /// Messages allowed in this period. It is nil without a limit (`isUnlimited`), or if it is unknown (`isDegraded`).
    public var limit: Int?
    /// Messages that may still be sent; nil if `limit` is nil. 0 without access.
    public var remaining: Int?
    /// Messages of balances that are left, which `limit` includes; nil without any.
    public var extra: Int?
    /// When the first of them end; nil is never.
    public var extraExpires: Instant?
    public var period: BillingPeriod
    /// The shorter limit beside that of the period; nil if the plan has none.
    public var window: WindowStatus?
    /// Nil unless the request names a model.
    public var model: ModelUsage?
    /// Nil unless the request names a member.
    public var member: MemberUsage?
    /// When the allowance is renewed.
    public var resets: Instant?
    /// When a trial ends, or a subscription that is not renewed.
    public var expires: Instant?
    /// When the store renews an active subscription: it charges, and access continues. It is nil if the store does not,
    /// and in answers to other requests than `usage` (`label` is nil).
    public var renews: Instant?
    /// When the grace period, and with it access, ends unless the payment succeeds before. Only answers to `usage` have
    /// it.
    public var graceUntil: Instant?
    /// The day of a trial, from 1; day 1 is the first 24 hours.
    public var day: Int?
    /// The number of days of the trial.
    public var days: Int?
    /// The tier into which this message moved the user. Only one answer has it, so it can trigger a notification.
    public var crossed: Tier?
    /// Why the user may not send. A refusal has a reason, and so has every answer if the user has no access.
    public var reason: DenialReason?
    /// How long to wait until the refused messages would be allowed; nil if waiting does not help.
    public var retryAfter: Duration?
    /// The model to offer instead of the one with which messages were refused. It has room for them.
    public var fallback: ModelName?
    /// The last plan with periods before this one, or the plan that has ended. A paywall can highlight it.
    public var previousPlan: String?
    /// The plan that begins with the renewal, if it is another one. Only answers to `usage` have it.
    public var nextPlan: String?
    /// The plan's label for users: "Premium", "Trial — Day 2 of 3". Only answers to `usage` have it.
    public var label: String?
    /// The state's label for users: "Active", "Billing issue". Only answers to `usage` have it.
    public var stateLabel: String?
    /// The usage as a sentence for a screen reader. Only answers to `usage` have it.
    public var accessible: String?
    /// The price that was paid at the last renewal, as a decimal number in units of `currency`: "9.99". Only answers to
    /// `usage` have it, if the store reported it.
    public var price: String?
    /// The currency of `price` by ISO 4217: "USD".
    public var currency: String?
    /// The address where the user changes the subscription. Only answers to `usage` have it.
    public var manage: String?
    /// A text for the user about what to do about a billing issue. Only answers to `usage` have it.
    public var steps: String?
    /// A text for the user about the subscription.
    public var notice: String?
    /// A text for the user about the messages that are left.
    public var banner: String?
    /// Whether the message was allowed beyond the limit of an unenforced plan.
    public var isShadow = false
    /// Whether an earlier call has used the key. This is that call's outcome, and nothing was counted now.
    public var isRepeated = false
    /// Whether the message was allowed without being counted, because the database or the service did not answer.
    /// `banner` has a sentence about it. The other fields have no limit, no texts, a hidden counter, and empty names of
    /// plan and period.
    public var isDegraded = false

    public init(
        user: UserID,
        plan: String,
        state: SubscriptionState,
        tier: Tier,
        display: Display,
        used: Int,
        limit: Int?,
        remaining: Int?,
        period: BillingPeriod
    ) {
        self.user = user
        self.plan = plan
        self.state = state
        self.tier = tier
        self.display = display
        self.used = used
        self.limit = limit
        self.remaining = remaining
        self.period = period
    }

    /// Whether the plan has no limit. It is false if the service did not answer.
    public var isUnlimited: Bool { limit == nil && !isDegraded }

    /// The status of a message that was allowed without being counted, with a sentence as it is shipped.
    public static func degraded(_ user: UserID, language: LanguageTag?) -> UsageStatus {
        degraded(user, banner: Phrase(.uncounted).text(in: Words.shipped.vocabulary(for: language)))
    }

    /// The status of a message that was allowed without being counted.
    public static func degraded(_ user: UserID, banner: String? = Phrase(.uncounted).text) -> UsageStatus {
        var status = UsageStatus(
            user: user,
            plan: "",
            state: .active,
            tier: .silent,
            display: .hidden,
            used: 0,
            limit: nil,
            remaining: nil,
            period: BillingPeriod(storedLabel: "")
        )
        status.banner = banner
        status.isDegraded = true
        return status
    }
}

extension UsageStatus {
    /// Sets a decoded field.
    ///
    /// - Returns: false for an invalid value.
    mutating func set(_ field: AnswerField, _ value: FieldText) -> Bool {
        switch field {
        case .user: assign(UserID(value.bytes), to: &user)
        case .plan: assign(value.text, to: &plan)
        case .state: assign(SubscriptionState(rawValue: value.text), to: &state)
        case .tier: assign(Tier(rawValue: value.text), to: &tier)
        case .display: assign(Display(rawValue: value.text), to: &display)
        case .used: assign(value.bytes.plainNumber, to: &used)
        case .held: assign(value.bytes.plainNumber, to: &held)
        case .limit: assign(value.allowance, to: &limit)
        case .remaining: assign(value.allowance, to: &remaining)
        case .extra: assign(value.bytes.plainNumber, to: &extra)
        case .extraExpires: assign(Instant(value.bytes), to: &extraExpires)
        case .windowLimit: assign(value.bytes.plainNumber, to: &decodedWindow.limit)
        case .windowUsed: assign(value.bytes.plainNumber, to: &decodedWindow.used)
        case .windowRemaining: assign(value.bytes.plainNumber, to: &decodedWindow.remaining)
        case .windowResets: assign(Instant(value.bytes), to: &decodedWindow.resets)
        case .model: assign(ModelName(value.text), to: &decodedModel.name)
        case .modelLimit: assign(value.bytes.plainNumber, to: &decodedModel.limit)
        case .modelUsed: assign(value.bytes.plainNumber, to: &decodedModel.used)
        case .modelRemaining: assign(value.bytes.plainNumber, to: &decodedModel.remaining)
        case .modelResets: assign(Instant(value.bytes), to: &decodedModel.resets)
        case .member: assign(UserID(value.bytes), to: &decodedMember.id)
        case .memberLimit: assign(value.bytes.plainNumber, to: &decodedMember.limit)
        case .memberUsed: assign(value.bytes.plainNumber, to: &decodedMember.used)
        case .memberRemaining: assign(value.bytes.plainNumber, to: &decodedMember.remaining)
        case .period: assign(BillingPeriod(storedLabel: value.text), to: &period)
        case .resets: assign(Instant(value.bytes), to: &resets)
        case .expires: assign(Instant(value.bytes), to: &expires)
        case .renews: assign(Instant(value.bytes), to: &renews)
        case .graceUntil: assign(Instant(value.bytes), to: &graceUntil)
        case .day: assign(value.bytes.plainNumber, to: &day)
        case .days: assign(value.bytes.plainNumber, to: &days)
        case .crossed: assign(Tier(rawValue: value.text), to: &crossed)
        case .reason: assign(DenialReason(rawValue: value.text), to: &reason)
        case .retryAfter: assign(value.bytes.plainNumber.map { .seconds($0) }, to: &retryAfter)
        case .fallback: assign(ModelName(value.text), to: &fallback)
        case .shadow: assign(value.flag, to: &isShadow)
        // It is a field of `ReceivedAnswer`.
        case .released: true
        case .replayed: assign(value.flag, to: &isRepeated)
        case .degraded: assign(value.flag, to: &isDegraded)
        case .previousPlan: assign(value.text, to: &previousPlan)
        case .nextPlan: assign(value.text, to: &nextPlan)
        case .label: assign(value.text, to: &label)
        case .stateLabel: assign(value.text, to: &stateLabel)
        case .accessible: assign(value.text, to: &accessible)
        case .price: assign(value.text, to: &price)
        case .currency: assign(value.text, to: &currency)
        case .manage: assign(value.text, to: &manage)
        case .steps: assign(value.text, to: &steps)
        case .notice: assign(value.text, to: &notice)
        case .banner: assign(value.text, to: &banner)
        }
    }

    private var decodedWindow: WindowStatus {
        get { window ?? WindowStatus(limit: 0, used: 0, remaining: 0) }
        set { window = newValue }
    }

    private var decodedModel: ModelUsage {
        get { model ?? ModelUsage(name: "unknown") }
        set { model = newValue }
    }

    private var decodedMember: MemberUsage {
        get { member ?? MemberUsage(id: UserID(high: 0, low: 0)) }
        set { member = newValue }
    }
}

private func assign<Value>(_ value: Value?, to target: inout Value) -> Bool {
    guard let value else { return false }
    target = value
    return true
}

private func assign<Value>(_ value: Value?, to target: inout Value?) -> Bool {
    target = value
    return value != nil
}

extension FieldText {
    /// The value of a flag, which is true for 1. A field that does not apply is absent, so any other value is invalid.
    fileprivate var flag: Bool? { bytes.plainNumber == 1 ? true : nil }

    /// The value of `limit` or `remaining`. `unlimited` is `.some(nil)`; an invalid value is nil.
    fileprivate var allowance: Int?? {
        if bytes.isWord("UNLIMITED") { return .some(nil) }
        return bytes.plainNumber.map { .some($0) }
    }
}
