import TestSupport
import Testing
import Usage

@testable import Billing

/// Midnight of a day: `2026-03-05`.
func day(_ text: String) -> Instant { at("\(text)T00:00:00Z") }

/// An event on a day, by default of the App Store.
func event(
    _ date: String,
    by identities: [String] = ["\(ada)"],
    _ effects: BillingEffect...,
    source: String = "appstore",
    received: String? = nil,
    applied: String? = nil,
    problem: BillingProblem? = nil
) -> RecordedEvent {
    let kinds = effects.map(\.kind.rawValue).joined(separator: " ")
    return RecordedEvent(
        key: RecordedEvent.Key(source: source, id: "\(date) \(kinds)"),
        at: day(date),
        receivedAt: day(received ?? date),
        appliedAt: applied.map(day),
        environment: "production",
        identities: identities,
        effects: effects,
        problem: problem
    )
}

func effect(
    _ kind: BillingEffect.Kind,
    _ transaction: String = "T",
    plan: String? = nil,
    regularPlan: String? = nil,
    nextPlan: String? = nil,
    product: String? = nil,
    nextProduct: String? = nil,
    started: String? = nil,
    until: String? = nil,
    graceUntil: String? = nil,
    messages: Int? = nil,
    anchorDay: Int? = nil
) -> BillingEffect {
    var effect = BillingEffect(
        kind,
        transaction: transaction,
        product: product,
        nextProduct: nextProduct,
        started: started.map(day),
        expires: until.map(day),
        graceUntil: graceUntil.map(day)
    )
    effect.plan = plan
    effect.regularPlan = regularPlan
    effect.nextPlan = nextPlan
    effect.messages = messages
    effect.anchorDay = anchorDay
    return effect
}

/// A trial that starts with its event, by default followed by the plan `paid`.
func trial(_ transaction: String = "T", until: String, regularPlan: String? = "paid") -> BillingEffect {
    effect(.purchased, transaction, plan: "trial", regularPlan: regularPlan, until: until)
}

/// The reduced state of a history, compared with the reference model.
struct ReducedCustomer {
    let state: CustomerState

    init(
        _ events: RecordedEvent...,
        users: [UserID: UserRecord] = [:],
        now: String = "2026-12-31",
        _ location: SourceLocation = #_sourceLocation
    ) {
        self.init(events, users: users, now: now, location)
    }

    init(
        _ events: [RecordedEvent],
        users: [UserID: UserRecord] = [:],
        now: String = "2026-12-31",
        _ location: SourceLocation = #_sourceLocation
    ) {
        let history = CustomerHistory(
            events: events,
            users: users,
            plans: CustomerHistories.plans,
            allowances: CustomerHistories.allowances,
            renewalLeewaySeconds: CustomerHistories.renewalLeewaySeconds
        )
        state = CustomerReducer.reduce(history, at: day(now))
        let model = ReferenceCustomer(history, at: day(now)).state.simplified(for: history)
        let difference = difference(state.simplified(for: history), model)
        #expect(difference == "", "reducer and model differ", sourceLocation: location)
    }

    func subscription(of user: UserID = ada, _ transaction: String = "T") -> StoreSubscription? {
        state.subscriptions[user]?.first { $0.transaction == transaction }
    }

    /// By the day of an event.
    func result(_ date: String) -> EventResult? { state.results.first { $0.key.id.hasPrefix(date) }?.value }

    func outcome(_ date: String) -> EventResult.Outcome? { result(date)?.outcome }
}
