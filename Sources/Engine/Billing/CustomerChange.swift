import Billing
import JSON
import Usage

/// The input of `headroom.write_customer`: the differences between the reduced state and the tables.
struct CustomerChange: Encodable {
    struct Event: Encodable {
        var source: String
        var id: String
        var customer: Int64?
        var type: String
        var at: Instant
        var environment: String?
        var identities: [String]
        var effects: [BillingEffect]
        var payload: JSONValue
        var user: String?
        var outcome: String
        var missingPrerequisite: String?
        var unmappedProduct: String?
        var problem: String?
        /// The outcome of an earlier attempt; nil if there was none.
        var before: String?

        enum CodingKeys: String, CodingKey {
            case source, id, customer, type, at, environment, identities, effects, payload, user, outcome
            case missingPrerequisite = "missing_prerequisite"
            case unmappedProduct = "unmapped_product"
            case problem, before
        }
    }

    struct Result: Encodable, Equatable {
        var source: String
        var id: String
        var outcome: String
        var user: String?
        var missingPrerequisite: String?
        var unmappedProduct: ExactText?
        var problem: String?

        enum CodingKeys: String, CodingKey {
            case source, id, outcome, user
            case missingPrerequisite = "missing_prerequisite"
            case unmappedProduct = "unmapped_product"
            case problem
        }
    }

    struct User: Encodable {
        var user: String
        /// The day; nil if neither this nor one of the next three changed.
        var anchorDay: Int?
        var previousPlan: String?
        var storeTrialStartedAt: Instant?
        var trialUsedUpAt: Instant?
        /// The new and changed subscriptions; nil if there are none.
        var subscriptions: [SubscriptionRow]?
        /// The transactions that belong to another user now; nil if there are none.
        var removed: [String]?

        enum CodingKeys: String, CodingKey {
            case user
            case anchorDay = "anchor_day"
            case previousPlan = "previous_plan"
            case storeTrialStartedAt = "store_trial_started_at"
            case trialUsedUpAt = "trial_used_up_at"
            case subscriptions, removed
        }
    }

    struct Purchase: Encodable {
        var source: String
        var transaction: String
        var user: String
        var at: Instant
        var messages: Int
        var isRefunded: Bool

        enum CodingKeys: String, CodingKey {
            case source, transaction, user, at, messages
            case isRefunded = "is_refunded"
        }
    }

    struct Transfer: Encodable {
        var source: String
        var event: String
        var giver: String
        var receiver: String
        /// The plans whose periods are raised.
        var plans: [String]
    }

    var event: Event
    var results: [Result]?
    /// The users whose usage may change, in the order in which their rows are locked.
    var locks: [String]?
    var users: [User]?
    var purchases: [Purchase]?
    var transfers: [Transfer]?
    /// The transfers that raised counts and, as is known now, should not have.
    var revertedTransfers: [RecordedCustomer.Transfer]?

    enum CodingKeys: String, CodingKey {
        case event, results, locks, users, purchases, transfers
        case revertedTransfers = "reverted_transfers"
    }

    /// - Parameters:
    ///   - incoming: the event; `recorded` is its recorded form.
    ///   - state: the state that the customer's events, including this one, reduce to.
    ///   - customer: the customer's present rows.
    init(_ incoming: BillingEvent, _ recorded: RecordedEvent, _ state: CustomerState, _ customer: RecordedCustomer) {
        let known = Set((customer.users ?? []).map(\.user))
        let result = Result(recorded.key, state.results[recorded.key], known)
        event = Event(
            source: recorded.key.source,
            id: recorded.key.id,
            customer: customer.id,
            type: incoming.type,
            at: incoming.at,
            environment: recorded.environment,
            identities: incoming.identities,
            effects: recorded.effects,
            payload: incoming.payload,
            user: result.user,
            outcome: result.outcome,
            missingPrerequisite: result.missingPrerequisite,
            unmappedProduct: result.unmappedProduct?.text,
            problem: result.problem,
            before: customer.before
        )
        let results = (customer.events ?? []).filter { $0.key != recorded.key }.compactMap { event -> Result? in
            let result = Result(event.key, state.results[event.key], known)
            return result == Result(event) ? nil : result
        }
        self.results = results.isEmpty ? nil : results
        let users = (customer.users ?? []).compactMap { User(changing: $0, state) }.sorted { $0.user < $1.user }
        self.users = users.isEmpty ? nil : users
        purchases = CustomerChange.purchases(state, customer)
        transfers = CustomerChange.transfers(state, customer)
        revertedTransfers = CustomerChange.revertedTransfers(state, customer)
        let locks =
            users.map(\.user) + (transfers ?? []).flatMap { [$0.giver, $0.receiver] }
            + (revertedTransfers ?? []).map(\.receiver) + (purchases ?? []).map(\.user)
        self.locks = locks.isEmpty ? nil : Set(locks).sorted()
    }

    private static func purchases(_ state: CustomerState, _ customer: RecordedCustomer) -> [Purchase]? {
        let written = Set((customer.purchases ?? []).map(\.state))
        let changed = state.purchases.filter { purchase in
            !written.contains(
                RecordedCustomer.Purchase.State(
                    source: purchase.source,
                    transaction: purchase.transaction,
                    isRefunded: purchase.isRefunded
                )
            )
        }
        guard !changed.isEmpty else { return nil }
        return changed.map {
            Purchase(
                source: $0.source,
                transaction: $0.transaction,
                user: $0.user.description,
                at: $0.at,
                messages: $0.messages,
                isRefunded: $0.isRefunded
            )
        }
    }

    private static func transfers(_ state: CustomerState, _ customer: RecordedCustomer) -> [Transfer]? {
        let made = Set(customer.transfers ?? [])
        let new = state.transfers.filter { !$0.plans.isEmpty && !made.contains(RecordedCustomer.Transfer($0)) }.map {
            Transfer(
                source: $0.event.source,
                event: $0.event.id,
                giver: $0.giver.description,
                receiver: $0.receiver.description,
                plans: $0.plans
            )
        }
        return new.isEmpty ? nil : new
    }

    private static func revertedTransfers(
        _ state: CustomerState,
        _ customer: RecordedCustomer
    ) -> [RecordedCustomer.Transfer]? {
        let standing = Set(state.transfers.filter { !$0.keepsOwnCount }.map { RecordedCustomer.Transfer($0) })
        let reverted = (customer.transfers ?? []).filter { !standing.contains($0) }
        return reverted.isEmpty ? nil : reverted
    }

}

extension CustomerChange.Result {
    /// - Parameter known: the users in `headroom.subscribers`. The UUID of another is not stored: `forget_user` could
    ///   not delete it.
    fileprivate init(_ key: RecordedEvent.Key, _ result: EventResult?, _ known: Set<String>) {
        source = key.source
        id = key.id
        outcome = (result?.outcome ?? .ignored).rawValue
        user = (result?.user?.description).flatMap { known.contains($0) ? $0 : nil }
        missingPrerequisite = result?.problem?.missingPrerequisite
        if case .unmappedProduct(let product)? = result?.problem { unmappedProduct = ExactText(product) }
        problem = result?.problem?.text(source: key.source)
    }

    fileprivate init(_ event: RecordedCustomer.Event) {
        source = event.source
        id = event.id
        outcome = event.outcome
        user = event.user
        missingPrerequisite = event.missingPrerequisite
        unmappedProduct = event.unmappedProduct.map { ExactText($0) }
        problem = event.problem
    }
}

extension CustomerChange.User {
    /// Makes the change of a user; nil if the user's rows need none.
    fileprivate init?(changing row: RecordedCustomer.User, _ state: CustomerState) {
        guard let id = UserID(row.user), let derived = state.users[id] else { return nil }
        let present = (row.subscriptions ?? []).filter(\.isOfStore)
        let wanted = (state.subscriptions[id] ?? []).compactMap { SubscriptionRow($0, of: id) }
        user = row.user
        let isSame =
            derived.anchorDay == row.anchorDay && derived.previousPlan == row.previousPlan
            && derived.trialStartedAt == row.storeTrialStartedAt && derived.trialUsedUpAt == row.trialUsedUpAt
        if !isSame {
            anchorDay = derived.anchorDay
            previousPlan = derived.previousPlan
            storeTrialStartedAt = derived.trialStartedAt
            trialUsedUpAt = derived.trialUsedUpAt
        }
        let changed = wanted.filter { !present.contains($0) }
        let names = Set(wanted.map(\.name))
        let removedNames = present.map(\.name).filter { !names.contains($0) }
        guard !(isSame && changed.isEmpty && removedNames.isEmpty) else { return nil }
        subscriptions = changed.isEmpty ? nil : changed
        removed = removedNames.isEmpty ? nil : removedNames.map(\.text)
    }
}

extension RecordedCustomer.Transfer {
    fileprivate init(_ transfer: UsageTransfer) {
        self.init(
            source: transfer.event.source,
            event: transfer.event.id,
            giver: transfer.giver.description,
            receiver: transfer.receiver.description
        )
    }
}
