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
    mutating func takeBack(_ charges: [PartCharge]) {
        for charge in charges {
            replace(charge.id) { $0.before(charge) }
            allowed[charge.id] = charge.messages
        }
    }
}

extension Batch.UserRequests {
    /// The requests with what their `consume` requests take of the allowances of a plan: with the models' weights, and
    /// of each part's limit. The fast path sends these sums.
    func charged(by plan: Plan, _ requests: [BatchedRequest]) -> Batch.UserRequests {
        var group = self
        (group.messages, group.charges) = (0, [])
        var positions: [PartID: Int] = [:]
        for request in requests[range] {
            guard case .consume(let messages, _) = request.operation.withoutParts else { continue }
            guard let parts = request.operation.parts else {
                group.messages += messages
                continue
            }
            let weight = parts.model.flatMap { plan.limit(of: .model($0))?.weight } ?? 1
            group.messages += messages * weight
            for part in parts.all {
                guard let limit = plan.limit(of: part) else { continue }
                let id = PartID(part, limit)
                let taken = part.kind == .model ? messages : messages * weight
                if let position = positions[id] {
                    group.charges[position].messages += taken
                } else {
                    positions[id] = group.charges.count
                    group.charges.append(PartCharge(id: id, limit: limit, messages: taken))
                }
            }
        }
        return group
    }
}
