import Usage

/// What a user's requests of a batch take of one limit.
struct PartCharge {
    /// The index of the user's group among those that are counted.
    let group: Int
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
    ///
    /// - Parameter key: the key of the messages, if they have one, whose first answer has the numbers.
    mutating func takeBack(_ charge: PartCharge, _ key: KeyParts?) {
        guard let present = counters[charge.id] else { return }
        let part = key?.counted.first { $0.id == charge.id }?.part
        let counted = part?.counter(charge.limit, present) ?? present
        allowed[charge.id] = counted
        set(counted.before(charge), for: charge.id)
    }
}

extension Batch.UserRequests {
    /// Computes what the `consume` requests take of the allowances of a plan: with the models' weights, and of each
    /// part's limit. The fast path sends these sums.
    ///
    /// - Parameters:
    ///   - index: that of this group.
    ///   - charges: what the groups before it take.
    mutating func charge(to plan: Plan, _ requests: [BatchedRequest], as index: Int, into charges: inout [PartCharge]) {
        messages = 0
        // The positions in `charges`.
        var positions = PartTable<Int>()
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
                let charged = part.kind == .model ? count : count * weight
                if let position = positions[id] {
                    charges[position].messages += charged
                } else {
                    if range.count > 1 { positions.set(charges.count, for: id) }
                    charges.append(PartCharge(group: index, id: id, limit: limit, messages: charged))
                }
            }
            messages += count * weight
            keyed?.messages = count * weight
            keyed?.messagesSoFar = messages
        }
    }
}
