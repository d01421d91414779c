import Usage

extension CountingModel.Parts {
    init(_ parts: MessageParts?) { self.init(model: parts?.model?.text, member: parts?.member?.description) }
}

extension ReferenceModel {
    /// The parts that the request names, with what is counted of each.
    func parts(_ reply: CountingModel.Reply) -> [PartUsage] {
        reply.parts.named.map { kind, name in
            let counter = partCounter(kind, reply.allowances)
            let limit = partLimit(kind, name, reply, reply.allowances)
            let part: MessagePart = kind == "model" ? .model(ModelName(name)!) : .member(UserID(name)!)
            guard kind == "model", let (model, allowances) = reply.fallback else {
                return PartUsage(part, limit: limit, counter: counter)
            }
            let fallback = PartUsage.Fallback(
                model: ModelName(model)!,
                limit: partLimit(kind, model, reply, allowances),
                counter: partCounter(kind, allowances)
            )
            return PartUsage(part, limit: limit, counter: counter, fallback: fallback)
        }
    }

    private func partCounter(_ kind: String, _ allowances: [CountingModel.Allowance]) -> PartCounter {
        var counter = PartCounter()
        for allowance in allowances where allowance.name == kind {
            guard allowance.seconds != nil else {
                (counter.used, counter.held) = (allowance.used, allowance.held)
                continue
            }
            (counter.windowUsed, counter.windowHeld) = (allowance.used, allowance.held)
            counter.windowOpenedAt = allowance.opened.map(Instant.init)
            counter.windowEndsAt = allowance.resets.map(Instant.init)
        }
        return counter
    }

    /// The plan's, with the numbers of the reply: a repetition has those of the first answer.
    private func partLimit(
        _ kind: String,
        _ name: String,
        _ reply: CountingModel.Reply,
        _ allowances: [CountingModel.Allowance]
    ) -> PlanLimit? {
        let own = allowances.filter { $0.name == kind }
        guard let period = own.first else { return nil }
        let rules = reply.plan.limit(of: kind, name)
        let present = plans[reply.plan.name]!.limits.first { $0.kind.rawValue == kind && $0.name == rules?.name }
        return PlanLimit(
            PlanLimit.Kind(rawValue: kind)!,
            rules?.name ?? period.counter!.name,
            label: present?.label,
            allowance: period.limit,
            window: own.count < 2 ? nil : Plan.Window(messages: own[1].limit!, seconds: own[1].seconds!),
            weight: rules?.weight ?? 1,
            fallback: present?.fallback
        )
    }
}
