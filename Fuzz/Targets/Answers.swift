import LineProtocol
import Usage

/// Random values for answers. Names and labels are any text, because a plan in the database may have any.
extension FuzzInput {
    /// One of four users, so that several requests are about the same one; `index` is 0 to 3.
    static func user(_ index: Int) -> UserID { UserID(high: 0x0102_0304_0506_4708, low: UInt64(index)) }

    mutating func user() -> UserID { FuzzInput.user(below(4)) }

    mutating func instant() -> Instant { Instant(secondsSince1970: Int64(number()) * 60) }

    mutating func plan() -> Plan {
        let cycle = one(of: [Plan.Cycle.monthly, .weekly, .daily, .trial(days: 3), .lifetime])
        return Plan(
            name: text(),
            label: text(),
            cycle: cycle,
            allowance: optional { $0.number() },
            gentlePercent: below(101),
            prominentPercent: below(101)
        )
    }

    mutating func period() -> BillingPeriod {
        let day = CivilDate(daysSince1970: Int64(below(100_000)))
        return switch below(5) {
        case 0: BillingPeriod(year: number() % 10_000, month: 1 + below(12))
        case 1: BillingPeriod(weekOf: day)
        case 2: BillingPeriod(day: day)
        case 3: BillingPeriod(storedLabel: "\(BillingPeriod(weekOf: day)).\(2 + below(998))")
        default: BillingPeriod(storedLabel: text())
        }
    }

    mutating func snapshot() -> UsageSnapshot {
        var snapshot = UsageSnapshot(
            plan: plan(),
            state: one(of: SubscriptionState.allCases),
            period: period(),
            used: number(),
            held: number(),
            limit: optional { $0.number() },
            window: optional {
                UsageWindow(
                    limit: $0.number(),
                    openedAt: $0.optional { $0.instant() },
                    endsAt: $0.optional { $0.instant() }
                )
            },
            windowUsed: number(),
            windowHeld: number(),
            denialReason: optional { $0.one(of: DenialReason.allCases) },
            startedAt: instant(),
            resetsAt: optional { $0.instant() },
            expiresAt: optional { $0.instant() },
            previousPlan: optional { $0.text() },
            renews: optional { $0.flag() },
            observedAt: instant(),
            renewsAt: optional { $0.instant() }
        )
        snapshot.details = optional {
            SubscriptionDetails(
                nextPlan: $0.optional { $0.text() },
                price: $0.optional { $0.text() },
                currency: $0.optional { $0.text() },
                manage: $0.optional { $0.text() }
            )
        }
        snapshot.parts = [MessagePart.model(modelName()), .member(user())].compactMap { part in
            optional { $0.partUsage(part) }
        }
        return snapshot
    }

    private mutating func modelName() -> ModelName { one(of: ["m", "gpt-5", "openai/gpt-5:free@eu_1.0"]) }

    private mutating func partLimit(_ kind: PlanLimit.Kind) -> PlanLimit? {
        optional {
            PlanLimit(
                kind,
                $0.text(),
                label: $0.optional { $0.text() },
                allowance: $0.optional { $0.number() },
                window: $0.optional { Plan.Window(messages: $0.number(), seconds: 60 + $0.below(1_000)) },
                weight: 1 + $0.below(1_000)
            )
        }
    }

    private mutating func partCounter() -> PartCounter {
        var counter = PartCounter()
        (counter.used, counter.held, counter.windowUsed, counter.windowHeld) = (number(), number(), number(), number())
        counter.windowOpenedAt = optional { $0.instant() }
        counter.windowEndsAt = counter.windowOpenedAt.map { $0.advanced(bySeconds: Int64(below(1_000))) }
        return counter
    }

    private mutating func partUsage(_ part: MessagePart) -> PartUsage {
        let fallback = optional {
            PartUsage.Fallback(model: $0.modelName(), limit: $0.partLimit(.model), counter: $0.partCounter())
        }
        return PartUsage(
            part,
            limit: partLimit(part.kind),
            counter: partCounter(),
            fallback: part.kind == .model ? fallback : nil
        )
    }

    mutating func answer() -> Answer {
        Answer(
            user: user(),
            status: one(of: [.allowed, .held, .ok] + DenialReason.allCases.map { Answer.Status.blocked($0) }),
            snapshot: snapshot(),
            crossed: optional { $0.one(of: Tier.allCases) },
            retryAfterSeconds: optional { Int64($0.number()) },
            released: optional { $0.number() },
            isRepeated: flag(),
            isDetailed: flag()
        )
    }

    mutating func periodUsage() -> PeriodUsage {
        PeriodUsage(
            user: user(),
            period: period(),
            used: number(),
            limit: optional { $0.number() },
            tier: one(of: Tier.allCases)
        )
    }

    mutating func report() -> PeriodReport {
        var report = PeriodReport(period: period())
        for _ in 0..<below(6) { report.add(users: number(), in: one(of: Tier.allCases), messages: number()) }
        return report
    }
}
