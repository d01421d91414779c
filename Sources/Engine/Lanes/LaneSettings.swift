import Usage

/// The session settings of a lane.
enum LaneSettings {
    /// - Parameters:
    ///   - requestTimeout: a statement is cancelled somewhat before this time, so that the answer can be "nothing was
    ///     counted" instead of "unknown".
    static func all(requestTimeout: Duration) -> [(String, String)] {
        [
            // These plans would lock rows in another order than that of the arrays (docs/decisions/0003-lock-order.md).
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
            ("max_parallel_workers_per_gather", "0"),
            // One plan is made, once, for every size of batch.
            ("plan_cache_mode", "force_generic_plan"),
            // Disabled plan types cost 10^10 each, so the planner would compile these plans, which is never worth it.
            ("jit", "off"),
            ("lock_timeout", "\(lockTimeout(requestTimeout).milliseconds)"),
            ("statement_timeout", "\((requestTimeout * 3 / 4).milliseconds)"),
            ("idle_in_transaction_session_timeout", "\((requestTimeout * 2).milliseconds)"),
        ]
    }

    /// The time that a statement waits for a lock.
    static func lockTimeout(_ requestTimeout: Duration) -> Duration { requestTimeout / 4 }

    /// The time that it waits if the users' rows were locked a moment ago. It is short, because other users wait too.
    static func briefLockTimeout(_ requestTimeout: Duration) -> Duration { requestTimeout / 40 }

    /// The settings with Citus, which cannot plan most statements without the value of the bucket. The others get a
    /// generic plan by themselves, after five executions.
    static let withCitus = [("plan_cache_mode", "auto")]
}
