import Usage

/// What a user's requests of a batch take of one limit.
struct PartCharge: Equatable {
    let id: PartID
    let limit: PlanLimit
    var messages: Int
}

extension PartCounter {
    /// Turns the counter after a batch into the one before it.
    func before(_ charge: PartCharge) -> PartCounter {
        var counter = self
        counter.used -= charge.messages
        if charge.limit.window != nil { counter.windowUsed -= charge.messages }
        return counter
    }
}

extension UserParts {
    /// Takes off what was counted, of counters that were read after it.
    mutating func takeBack(_ charge: PartCharge) {
        replace(charge.id) { $0.before(charge) }
        allowed[charge.id] = charge.messages
    }
}

extension Batch.UserRequests {
    /// Computes what the `consume` requests take of the allowances of a plan: with the models' weights, and of each
    /// part's limit. The fast path sends these sums.
    mutating func charge(to plan: Plan, _ requests: [BatchedRequest]) -> [PartCharge] {
        messages = 0
        var charges = PartTable<PartCharge>()
        for request in requests[range] {
            guard case .consume(let count, _) = request.operation else { continue }
            guard let parts = request.parts else {
                messages += count
                continue
            }
            // The model, whose weight counts for the member, too, is first.
            var weight = 1
            for part in parts.all {
                guard let limit = plan.limit(of: part) else { continue }
                if part.kind == .model { weight = limit.weight }
                let id = PartID(part, limit)
                var charge = charges[id] ?? PartCharge(id: id, limit: limit, messages: 0)
                charge.messages += part.kind == .model ? count : count * weight
                charges.set(charge, for: id)
            }
            messages += count * weight
        }
        return charges.values
    }
}
