import Billing
import Foundation
import JSON
import Postgres
import Usage

/// A customer as `headroom.lock_and_read_customer` returns it: the recorded events, and the present rows that follow
/// from them.
struct RecordedCustomer: Decodable {
    struct Event: Decodable {
        var source: String
        var id: String
        var at: Instant
        var receivedAt: Instant
        var appliedAt: Instant?
        var environment: String?
        var identities: [String]
        var effects: [BillingEffect]
        var user: String?
        var outcome: String
        var missingPrerequisite: String?
        var unmappedProduct: String?
        var problem: String?

        enum CodingKeys: String, CodingKey {
            case source, id, at
            case receivedAt = "received_at"
            case appliedAt = "applied_at"
            case environment, identities, effects, user, outcome
            case missingPrerequisite = "missing_prerequisite"
            case unmappedProduct = "unmapped_product"
            case problem
        }

        var key: RecordedEvent.Key { RecordedEvent.Key(source: source, id: id) }
    }

    struct User: Decodable {
        var user: String
        var declaredAt: Instant?
        var declaredAnchorDay: Int
        var declaredPreviousPlan: String?
        var trialStartedAt: Instant?
        var trialEndsAt: Instant?
        var trialUsedUpAt: Instant?
        var presentTrialUsedUpAt: Instant?
        var anchorDay: Int
        var previousPlan: String?
        var storeTrialStartedAt: Instant?
        var subscriptions: [SubscriptionRow]?

        enum CodingKeys: String, CodingKey {
            case user
            case declaredAt = "operator_set_at"
            case declaredAnchorDay = "operator_anchor_day"
            case declaredPreviousPlan = "operator_previous_plan"
            case trialStartedAt = "trial_started_at"
            case trialEndsAt = "trial_ends_at"
            case trialUsedUpAt = "trial_used_up_at"
            case presentTrialUsedUpAt = "present_trial_used_up_at"
            case anchorDay = "anchor_day"
            case previousPlan = "previous_plan"
            case storeTrialStartedAt = "store_trial_started_at"
            case subscriptions
        }
    }

    struct Purchase: Decodable {
        var source: String
        var transaction: String
        var user: String
        var isRefunded: Bool

        enum CodingKeys: String, CodingKey {
            case source, transaction, user
            case isRefunded = "is_refunded"
        }

        /// The values by which purchases are compared.
        struct State: Hashable {
            @ExactText var source: String
            @ExactText var transaction: String
            var isRefunded: Bool
        }

        var state: State { State(source: source, transaction: transaction, isRefunded: isRefunded) }
    }

    struct Transfer: Codable, Hashable {
        var source: String
        @ExactText var event: String
        var giver: String
        var receiver: String
    }

    struct PlanRow: Decodable {
        var plan: String
        var cycle: String
        var days: Int?
        var allowance: Int?
    }

    struct MappingRow: Decodable {
        var product: String?
        var entitlement: String?
        var plan: String?
        var trialPlan: String?
        var introPlan: String?
        var messages: Int?
        var days: Int?

        enum CodingKeys: String, CodingKey {
            case product, entitlement, plan
            case trialPlan = "trial_plan"
            case introPlan = "intro_plan"
            case messages, days
        }
    }

    /// The answer, if the event was applied before. All other fields are nil then.
    var answer: JSONValue?
    var now: Instant?
    var id: Int64?
    /// The event's outcome in an earlier attempt; nil if there was none.
    var before: String?
    var receivedAt: Instant?
    var appliedAt: Instant?
    var events: [Event]?
    var users: [User]?
    var purchases: [Purchase]?
    var transfers: [Transfer]?
    var plans: [PlanRow]?
    var renewalLeewaySeconds: Int64?
    var products: [MappingRow]?
    var entitlements: [MappingRow]?

    enum CodingKeys: String, CodingKey {
        case answer, now, before
        case id = "customer"
        case receivedAt = "received_at"
        case appliedAt = "applied_at"
        case events, users, purchases, transfers, plans
        case renewalLeewaySeconds = "renewal_leeway_s"
        case products, entitlements
    }

    /// - Throws: if a row holds an invalid value, for instance an infinite instant.
    init(json: String) throws(PostgresError) {
        do {
            self = try JSONDecoder().decode(RecordedCustomer.self, from: Data(json.utf8))
        } catch {
            throw PostgresError(
                .server(.invalidStoredValue),
                "a customer's rows hold a value that is out of range: check the user's rows in headroom.subscribers, "
                    + "headroom.subscriptions and headroom.billing_events"
            )
        }
    }
}

extension RecordedCustomer {
    var mapping: ProductMapping {
        func targets(_ rows: [MappingRow]?, _ name: KeyPath<MappingRow, String?>) -> [ExactText: ProductMapping.Target]
        {
            let targets = (rows ?? []).compactMap { row in row[keyPath: name].map { (ExactText($0), row.target) } }
            return Dictionary(targets) { $1 }
        }
        return ProductMapping(
            products: targets(products, \.product),
            entitlements: targets(entitlements, \.entitlement),
            allowances: allowances
        )
    }

    private var allowances: [String: Int] {
        Dictionary((plans ?? []).compactMap { row in row.allowance.map { (row.plan, $0) } }) { $1 }
    }

    /// A plan that an effect names and that does not exist, because an operator may have misspelled it; else nil.
    func unknownPlan(in effects: [BillingEffect]) -> String? {
        let names = Set((plans ?? []).map(\.plan))
        return effects.flatMap { [$0.plan, $0.nextPlan] }.compactMap { $0 }.first { !names.contains($0) }
    }

    var recordedEvents: [RecordedEvent] { (events ?? []).map(\.recorded) }

    /// The history including this event, in place of its earlier record.
    func history(with event: RecordedEvent) -> CustomerHistory {
        let earlier = recordedEvents.filter { $0.key != event.key }
        let cycles = Dictionary((plans ?? []).map { ($0.plan, $0.planCycle) }) { $1 }
        let users = (users ?? []).compactMap { row in UserID(row.user).map { ($0, row.record(cycles)) } }
        return CustomerHistory(
            events: earlier + [event],
            users: Dictionary(users) { $1 },
            plans: cycles,
            allowances: allowances,
            renewalLeewaySeconds: renewalLeewaySeconds ?? 0
        )
    }
}

extension RecordedCustomer.Event {
    fileprivate var recorded: RecordedEvent {
        // The event is reduced again, because the missing user may be known now, or the time may have come.
        let stored: BillingProblem? =
            switch missingPrerequisite {
            case "user", "time": nil
            case "product": .unmappedProduct(unmappedProduct ?? "")
            default: problem.map { .malformed($0) }
            }
        return RecordedEvent(
            key: key,
            at: at,
            receivedAt: receivedAt,
            appliedAt: appliedAt,
            environment: environment,
            identities: identities,
            effects: effects,
            problem: stored
        )
    }
}

extension RecordedCustomer.User {
    /// - Parameter cycles: those of the plans.
    fileprivate func record(_ cycles: [String: Plan.Cycle]) -> UserRecord {
        var endOfTrial = trialEndsAt
        if endOfTrial == nil, case .trial(let days) = cycles["trial"] {
            endOfTrial = trialStartedAt?.advanced(bySeconds: Int64(days) * 86_400)
        }
        var trial: UserRecord.Trial?
        if let trialStartedAt, let endOfTrial {
            trial = UserRecord.Trial(startedAt: trialStartedAt, endsAt: endOfTrial)
        }
        let declaredPlan = (subscriptions ?? []).first { $0.originalTransactionId == "operator" }?.plan
        let others = (subscriptions ?? []).filter { !$0.isOfStore }.map { row in
            var subscription = StoreSubscription(row)
            subscription.startedAt = row.startedAt ?? declaredAt
            return subscription
        }
        return UserRecord(
            declaredAt: declaredAt,
            declaredPlan: declaredPlan.flatMap { cycles[$0]?.isPeriodic == true ? $0 : nil },
            declaredAnchorDay: declaredAnchorDay,
            declaredPreviousPlan: declaredPreviousPlan,
            trial: trial,
            trialUsedUpAt: trialUsedUpAt,
            presentTrialUsedUpAt: presentTrialUsedUpAt,
            otherSubscriptions: others
        )
    }
}

extension RecordedCustomer.MappingRow {
    fileprivate var target: ProductMapping.Target {
        ProductMapping.Target(plan: plan, trialPlan: trialPlan, introPlan: introPlan, messages: messages, days: days)
    }
}

extension RecordedCustomer.PlanRow {
    fileprivate var planCycle: Plan.Cycle {
        switch cycle {
        case "monthly": .monthly
        case "weekly": .weekly
        case "daily": .daily
        case "trial": .trial(days: days ?? 0)
        default: .lifetime
        }
    }
}
