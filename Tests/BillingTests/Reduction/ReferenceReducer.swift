import Usage

@testable import Billing

/// Applies effects to subscriptions, one after the other.
struct ReferenceReducer {
    private struct Name: Hashable {
        var user: UserID
        var transaction: String
    }

    private let customer: ReferenceCustomer
    private let trials: ReferenceTrials
    private var subscriptions: [Name: StoreSubscription] = [:]
    private var users: [UserID: UserState] = [:]
    private var lastPeriodicPlan: [UserID: String] = [:]

    private var fault: ReferenceCustomer.Fault? { customer.fault }

    init(_ customer: ReferenceCustomer) {
        self.customer = customer
        trials = ReferenceTrials(customer)
        for (user, record) in customer.history.users { begin(user, record) }
        for event in customer.events where customer.problem(event) == nil {
            for effect in event.effects where isInForce(effect, event) { apply(effect, event) }
        }
        for steps in customer.steps.values {
            for user in steps.compactMap(\.owner.user) where users[user] == nil { begin(user, UserRecord()) }
        }
    }

    private mutating func begin(_ user: UserID, _ record: UserRecord) {
        users[user] = UserState(
            anchorDay: record.declaredAnchorDay,
            previousPlan: record.declaredPreviousPlan,
            trialStartedAt: trials.ofStores(user).map(\.startedAt).min(),
            trialUsedUpAt: trials.usedUp(of: user)
        )
        lastPeriodicPlan[user] = record.declaredPlan
    }

    var state: CustomerState {
        var state = CustomerState()
        state.users = users
        for (name, subscription) in subscriptions where subscription.plan != nil {
            state.subscriptions[name.user, default: []].append(shown(subscription, to: name.user))
        }
        for user in state.subscriptions.keys {
            state.subscriptions[user]?.sort { ReferenceCustomer.isBefore($0.transaction, $1.transaction) }
        }
        for event in customer.history.events {
            state.results[event.key] = customer.result(of: event) { effect in outcome(effect, event) }
        }
        return state
    }

    /// A second trial has the dates of the first.
    private func shown(_ subscription: StoreSubscription, to user: UserID) -> StoreSubscription {
        var subscription = subscription
        guard isTrial(subscription.plan) else { return subscription }
        // More than one source may report it.
        let transactions = customer.steps.keys.filter {
            $0.name == subscription.transaction && customer.owner(of: $0) == .user(user)
        }
        if let first = transactions.compactMap(trials.trialInPlace).min(by: { $0.isBefore($1) }) {
            subscription.startedAt = first.startedAt
            subscription.expiresAt = first.endsAt
        }
        return subscription
    }

    private func outcome(_ effect: BillingEffect, _ event: RecordedEvent) -> EventResult.Outcome {
        guard isInForce(effect, event) else { return .outdated }
        guard let name = name(effect, event), subscriptions[name]?.plan != nil else {
            return effect.isRefundOfSale ? .ignored : .waiting
        }
        return .applied
    }

    private func name(_ effect: BillingEffect, _ event: RecordedEvent) -> Name? {
        guard let user = customer.subject(of: effect, in: event)?.user, let transaction = effect.transaction
        else { return nil }
        return Name(user: user, transaction: transaction)
    }

    /// A plan set by an operator overrides events that happened or arrived before. A subscription that was transferred
    /// to the user since counts with all of its events.
    private func isInForce(_ effect: BillingEffect, _ event: RecordedEvent) -> Bool {
        guard let name = name(effect, event), let declaredAt = customer.history.users[name.user]?.declaredAt,
            fault != .ignoresDeclaredPlans
        else { return true }
        if event.at >= declaredAt, event.receivedAt >= declaredAt { return true }
        guard let transaction = customer.transaction(effect, event), let steps = customer.steps[transaction],
            steps.count > 1, let last = steps.last, fault != .ignoresTransfersAfterDeclaredPlans
        else { return false }
        return last.event.at >= declaredAt
    }

    private func isMonthly(_ plan: String?) -> Bool { plan.flatMap { customer.history.plans[$0] } == .monthly }

    private func isPeriodic(_ plan: String?) -> Bool {
        plan.flatMap { customer.history.plans[$0] }?.isPeriodic == true
    }

    private func isTrial(_ plan: String?) -> Bool { trials.days(plan) != nil }
}

// MARK: A user

extension ReferenceReducer {
    private mutating func apply(_ effect: BillingEffect, _ event: RecordedEvent) {
        guard ReferenceCustomer.isOnTransaction(effect), effect.kind != .linked, let name = name(effect, event),
            let transaction = customer.transaction(effect, event)
        else { return }
        if users[name.user] == nil { begin(name.user, UserRecord()) }
        var effect = effect
        if isTrial(effect.plan), let plan = trials.planInPlace(of: transaction) { effect.plan = plan }
        let before = subscriptions[name] ?? StoreSubscription(transaction: name.transaction)
        let after = changed(before, by: effect, event)
        subscriptions[name] = after

        let isPurchase = effect.kind == .purchased
        if let day = after.anchorDay, day != before.anchorDay || effect.anchorDay != nil || isPurchase {
            users[name.user]?.anchorDay = day
        }
        if let plan = after.plan, isPeriodic(plan), plan != before.plan || isPurchase {
            if let last = lastPeriodicPlan[name.user], last != plan, fault != .ignoresPreviousPlan {
                users[name.user]?.previousPlan = last
            }
            lastPeriodicPlan[name.user] = plan
        }
    }
}

// MARK: A subscription

extension ReferenceReducer {
    private func changed(
        _ before: StoreSubscription,
        by effect: BillingEffect,
        _ event: RecordedEvent
    ) -> StoreSubscription {
        var after = before
        // Before the first payment, any event may set the end.
        if before.startedAt == nil, before.expiresAt == nil { after.expiresAt = effect.expires }
        switch effect.kind {
        case .purchased, .renewed: pay(&after, effect, event)
        case .cancelled:
            lengthen(&after, effect)
            after.unsubscribedAt = atOnce(event.at, event)
        case .uncancelled:
            lengthen(&after, effect)
            after.unsubscribedAt = nil
        case .gracePeriod: allowGrace(&after, effect, event)
        case .billingRetry:
            after.graceUntil = [after.graceUntil, effect.graceUntil, event.at].compactMap(\.self).min()
            after.billingIssueAt = before.billingIssueAt ?? event.at
        case .expired: end(&after, effect, event)
        case .revoked: after.revokedAt = before.revokedAt ?? atOnce(event.at, event)
        case .reinstated: after.revokedAt = nil
        case .extended, .temporary:
            let isEndless = after.startedAt != nil && after.expiresAt == nil
            if !isEndless { after.expiresAt = later(after.expiresAt, effect.expires) }
            if before.startedAt == nil { after.renews = effect.sale?.renews }
        case .productChanged:
            if let plan = effect.plan {
                after.plan = plan
                after.product = effect.product ?? after.product
                let earliest = [after.expiresAt, effect.expires].compactMap(\.self).min()
                let isUnpaid = effect.isUnpaid == true && !isBefore(effect.started, after.expiresAt)
                after.expiresAt = isUnpaid ? earliest : effect.expires ?? after.expiresAt
            }
            after.nextPlan = effect.nextPlan
            after.nextProduct = effect.nextProduct
        case .granted, .transferred, .merged, .linked: break
        }
        after.plan = after.plan ?? effect.plan
        after.product = after.product ?? effect.product
        after.anchorDay = effect.anchorDay ?? after.anchorDay
        after.environment = event.environment ?? after.environment
        after.store = effect.sale?.store ?? after.store
        after.eventAt = event.at
        return after
    }

    /// Up to a minute after the arrival of the event counts as the arrival.
    private func atOnce(_ instant: Instant, _ event: RecordedEvent) -> Instant {
        let seconds = Double(instant.microsecondsSince1970 - event.receivedAt.microsecondsSince1970) / 1_000_000
        return seconds > 0 && seconds <= 60 ? event.receivedAt : instant
    }

    private func later(_ one: Instant?, _ other: Instant?) -> Instant? { [one, other].compactMap(\.self).max() }

    /// Whether a period begins in time that was paid. Without an end it was paid for good.
    private func isBefore(_ start: Instant?, _ end: Instant?) -> Bool {
        guard let start else { return false }
        return end == nil || start < end!
    }

    /// A later end is that of a renewal whose event was lost. It is paid, and so is what was due before.
    private func lengthen(_ subscription: inout StoreSubscription, _ effect: BillingEffect) {
        let known = subscription.expiresAt
        subscription.expiresAt = later(known, effect.expires)
        guard let known, known != subscription.expiresAt, let end = effect.expires else { return }
        subscription.renews = effect.sale?.renews
        if let grace = subscription.graceUntil, grace >= end { return }
        (subscription.graceUntil, subscription.billingIssueAt) = (nil, nil)
    }

    private func pay(_ subscription: inout StoreSubscription, _ effect: BillingEffect, _ event: RecordedEvent) {
        let before = subscription
        if effect.kind == .renewed, let started = effect.started, let newest = before.newestStart, started < newest,
            let end = effect.expires, before.expiresAt == nil || end <= before.expiresAt!
        {
            return
        }
        if effect.isUnpaid != true { subscription.newestStart = effect.started ?? before.newestStart }
        subscription.plan = effect.plan ?? before.nextPlan ?? before.plan
        subscription.product = effect.product ?? before.nextProduct ?? before.product
        subscription.expiresAt = effect.expires
        subscription.graceUntil = nil
        subscription.billingIssueAt = nil
        let begins = effect.started ?? event.at
        let isOfEarlierPeriod = before.unsubscribedAt.map { begins < $0 } ?? false
        if effect.kind == .purchased || !isOfEarlierPeriod { subscription.unsubscribedAt = nil }
        if fault != .renewalKeepsRevocation, effect.isUnpaid != true { subscription.revokedAt = nil }
        if fault != .keepsPendingProduct {
            subscription.nextPlan = nil
            subscription.nextProduct = nil
        }
        subscription.renews = effect.sale?.renews
        if let price = effect.sale?.price {
            (subscription.price, subscription.currency) = (price, effect.sale?.currency)
        } else if subscription.product != before.product {
            (subscription.price, subscription.currency) = (nil, nil)
        }
        // A change to an unknown plan is no conversion.
        let isKnown = subscription.plan.map { customer.history.plans[$0] != nil } ?? false
        let isConversion = isTrial(before.plan) && isKnown && !isTrial(subscription.plan)
        if effect.kind == .purchased || (isConversion && fault != .conversionKeepsAnchor) {
            subscription.startedAt = begins
            if isMonthly(subscription.plan) { subscription.anchorDay = begins.date.day }
        } else if before.startedAt == nil {
            subscription.startedAt = begins
            // It began at an unknown instant before its renewal.
            if effect.started != nil, isMonthly(subscription.plan) { subscription.anchorDay = begins.date.day }
        }
    }

    private func allowGrace(_ subscription: inout StoreSubscription, _ effect: BillingEffect, _ event: RecordedEvent) {
        if let until = effect.graceUntil {
            subscription.graceUntil = until
        } else if subscription.billingIssueAt == nil {
            let sixteenDays: Int64 = 16 * 24 * 60 * 60
            let isDated = subscription.expiresAt != nil || fault == .ignoresGrace
            subscription.graceUntil = isDated ? nil : event.at.advanced(bySeconds: sixteenDays)
        }
        subscription.billingIssueAt = subscription.billingIssueAt ?? event.at
    }

    private func end(_ subscription: inout StoreSubscription, _ effect: BillingEffect, _ event: RecordedEvent) {
        let end = effect.expires ?? event.at
        let isOfEarlierPeriod = subscription.expiresAt.map { end < $0 } ?? false
        if isOfEarlierPeriod, subscription.renews ?? true, fault != .earlierExpiryCounts { return }
        subscription.expiresAt = atOnce(end, event)
        subscription.renews = false
        subscription.graceUntil = nil
        subscription.billingIssueAt = nil
    }
}
