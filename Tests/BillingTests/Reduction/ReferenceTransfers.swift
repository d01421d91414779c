import Usage

@testable import Billing

/// Transfers of usage between users, and what each of them raises.
struct ReferenceTransfers {
    private let customer: ReferenceCustomer
    private let state: CustomerState

    init(_ customer: ReferenceCustomer, _ state: CustomerState) {
        self.customer = customer
        self.state = state
    }

    var all: [UsageTransfer] {
        customer.events.flatMap { event in
            pairs(in: event).sorted { one, other in
                one.giver == other.giver ? one.receiver < other.receiver : one.giver < other.giver
            }.map { transfer(in: event, from: $0.giver, to: $0.receiver) }
        }
    }

    private struct Pair: Hashable {
        var giver: UserID
        var receiver: UserID
    }

    private func isOf(_ event: RecordedEvent) -> (ReferenceCustomer.Step) -> Bool {
        { $0.event.key == event.key }
    }

    /// The giver and the receiver of each change of an owner by the event.
    private func pairs(in event: RecordedEvent) -> Set<Pair> {
        var pairs: Set<Pair> = []
        for steps in customer.steps.values {
            for index in steps.indices where isOf(event)(steps[index]) {
                let path = steps[..<index].map(\.owner)
                let giver =
                    customer.fault == .anonymousTransferLosesGiver ? path.last?.user : ReferenceCustomer.lastUser(path)
                guard let giver, let receiver = steps[index].owner.user else { continue }
                pairs.insert(Pair(giver: giver, receiver: receiver))
            }
        }
        if customer.problem(event) == nil {
            for effect in event.effects where effect.kind == .merged {
                let users = (effect.identities ?? []).compactMap { UserID($0) }
                for user in users.dropFirst() { pairs.insert(Pair(giver: user, receiver: users[0])) }
            }
        }
        return pairs.filter { $0.giver != $0.receiver }
    }

    private func transfer(in event: RecordedEvent, from giver: UserID, to receiver: UserID) -> UsageTransfer {
        var transfer = UsageTransfer(event: event.key, giver: giver, receiver: receiver)
        let moved = customer.steps.filter { _, steps in
            steps.indices.contains { index in
                isOf(event)(steps[index]) && steps[index].owner == .user(receiver)
                    && ReferenceCustomer.lastUser(steps[..<index].map(\.owner)) == giver
            }
        }.keys
        let given = moved.compactMap(subscription)
        let own = ownAllowance(of: receiver, before: event, without: Set(moved))
        let better = given.filter { own == nil || allowance($0) > own ?? 0 || customer.fault == .giftRaisesEverybody }
        transfer.plans = better.filter { hasAccess($0, event.at) || customer.fault == .lateTransferRaises }
            .compactMap(\.plan)
        let isAlias =
            customer.problem(event) == nil
            && event.effects.contains { $0.kind == .merged && ($0.identities ?? []).contains { UserID($0) != nil } }
        if isAlias, customer.history.users[receiver]?.trial == nil { transfer.plans.append("trial") }
        transfer.plans = Set(transfer.plans).sorted()
        transfer.keepsOwnCount = transfer.plans.isEmpty && !given.isEmpty && better.isEmpty
        return transfer
    }

    private func subscription(_ transaction: ReferenceCustomer.Transaction) -> StoreSubscription? {
        let owner = customer.owner(of: transaction)?.user
        return owner.flatMap { state.subscriptions[$0] }?.first { $0.transaction == transaction.name }
    }

    /// The best of what the user had without the transferred transactions: of stores, an operator, a first message.
    private func ownAllowance(
        of user: UserID,
        before event: RecordedEvent,
        without moved: Set<ReferenceCustomer.Transaction>
    ) -> Int? {
        let bought = customer.steps.filter { transaction, steps in
            let before = steps.prefix { ReferenceCustomer.isOrdered($0.event, event) }
            return before.last?.owner == .user(user) && !moved.contains(transaction)
        }.keys.compactMap(subscription)
        let all = bought + (customer.history.users[user]?.otherSubscriptions ?? [])
        return all.filter { hasAccess($0, event.at) && $0.startedAt.map { $0 <= event.at } ?? false }
            .map(allowance).max()
    }

    private func allowance(_ subscription: StoreSubscription) -> Int {
        subscription.plan.flatMap { customer.history.allowances[$0] } ?? Int.max
    }

    private func hasAccess(_ subscription: StoreSubscription, _ instant: Instant) -> Bool {
        guard let plan = subscription.plan, let cycle = customer.history.plans[plan] else { return false }
        let isRevoked = subscription.revokedAt.map { $0 <= instant } ?? false
        var ends = [subscription.expiresAt].compactMap(\.self)
        switch cycle {
        case .trial(let days):
            if let start = subscription.startedAt, ends.isEmpty {
                ends = [start.advanced(bySeconds: Int64(days) * 24 * 60 * 60)]
            }
        default:
            guard subscription.billingIssueAt != nil else {
                // A store's event about a renewal comes after it.
                let isOver = subscription.unsubscribedAt != nil || subscription.revokedAt != nil
                let isOfStore = !["operator", "first message"].contains(subscription.transaction)
                if !isOver, isOfStore, subscription.renews ?? true {
                    ends = ends.map { $0.advanced(bySeconds: customer.history.renewalLeewaySeconds) }
                }
                break
            }
            let sixteenDays = ends.first?.advanced(bySeconds: 16 * 24 * 60 * 60)
            ends += [subscription.graceUntil ?? sixteenDays].compactMap(\.self)
        }
        return !isRevoked && ends.max().map { instant < $0 } ?? true
    }
}
