import Postgres
import TestSupport
import Usage

/// A row of `headroom.plans` and the plan's rows of `headroom.plan_limits`, as an operator writes them.
enum PlanRow {
    static func write(_ plan: Plan, _ connection: DatabaseConnection) throws {
        var parameters = Parameters()
        parameters.append(text: plan.name)
        parameters.append(text: plan.label)
        switch plan.cycle {
        case .monthly: parameters.append(text: "monthly")
        case .weekly: parameters.append(text: "weekly")
        case .daily: parameters.append(text: "daily")
        case .trial: parameters.append(text: "trial")
        case .lifetime: parameters.append(text: "lifetime")
        }
        parameters.append(int32: plan.allowance.map { Int32($0) })
        if case .trial(let days) = plan.cycle {
            parameters.append(int32: Int32(days))
        } else {
            parameters.append(int32: nil)
        }
        parameters.append(int32: Int32(plan.gentlePercent))
        parameters.append(int32: Int32(plan.prominentPercent))
        parameters.append(text: plan.timeZone)
        parameters.append(text: plan.isEnforced ? "true" : "false")
        parameters.append(int32: (plan.window?.messages).map { Int32($0) })
        parameters.append(int32: (plan.window?.seconds).map { Int32($0) })
        _ = try connection.query(
            """
            insert into headroom.plans (
                plan, label, cycle, allowance, trial_days, gentle_percent, prominent_percent, time_zone,
                enforced, window_messages, window_seconds
            ) values ($1, $2, $3, $4, $5, $6, $7, $8, $9::text::boolean, $10, $11)
            on conflict (plan) do update
            set label = excluded.label, cycle = excluded.cycle, allowance = excluded.allowance,
                trial_days = excluded.trial_days, gentle_percent = excluded.gentle_percent,
                prominent_percent = excluded.prominent_percent, time_zone = excluded.time_zone,
                enforced = excluded.enforced, window_messages = excluded.window_messages,
                window_seconds = excluded.window_seconds
            """,
            parameters,
            deadline: .now + waitLimit
        )
        var names = Parameters()
        names.append(text: plan.name)
        names.append(text: "{" + plan.limits.map { "\($0.kind.rawValue) \($0.name)" }.joined(separator: ",") + "}")
        _ = try connection.query(
            "delete from headroom.plan_limits where plan = $1 and kind || ' ' || name <> all ($2::text::text[])",
            names,
            deadline: .now + waitLimit
        )
        for limit in plan.limits { try write(limit, of: plan, connection) }
    }

    private static func write(_ limit: PlanLimit, of plan: Plan, _ connection: DatabaseConnection) throws {
        var parameters = Parameters()
        for text in [plan.name, limit.kind.rawValue, limit.name, limit.label, limit.fallback?.text] {
            parameters.append(text: text)
        }
        for number in [limit.allowance, limit.window?.messages, limit.window?.seconds, limit.weight] {
            parameters.append(int32: number.map { Int32($0) })
        }
        _ = try connection.query(
            """
            insert into headroom.plan_limits (
                plan, kind, name, label, fallback, allowance, window_messages, window_seconds, weight
            ) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            on conflict (plan, kind, name) do update
            set label = excluded.label, fallback = excluded.fallback, allowance = excluded.allowance,
                window_messages = excluded.window_messages, window_seconds = excluded.window_seconds,
                weight = excluded.weight
            """,
            parameters,
            deadline: .now + waitLimit
        )
    }
}
