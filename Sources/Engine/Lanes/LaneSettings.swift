import Usage

/// Session settings of a lane.
enum LaneSettings {
    /// - Parameters:
    ///   - requestTimeout: a statement is cancelled somewhat before it, so that the answer can be "nothing was counted"
    ///     instead of "unknown".
    static func all(requestTimeout: Duration) -> [(String, String)] {
        [
            // The plans that would lock rows in another order than that of the arrays. See
            // docs/decisions/0003-lock-order.md.
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
            ("max_parallel_workers_per_gather", "0"),
            // One plan for every size of batch, made once.
            ("plan_cache_mode", "force_generic_plan"),
            // Disabled plan types cost 10^10 each, which looks worth compiling to the planner and never is.
            ("jit", "off"),
            ("lock_timeout", "\(lockTimeout(requestTimeout).milliseconds)"),
            ("statement_timeout", "\((requestTimeout * 3 / 4).milliseconds)"),
            ("idle_in_transaction_session_timeout", "\((requestTimeout * 2).milliseconds)"),
        ]
    }

    /// How long a statement waits for a lock.
    static func lockTimeout(_ requestTimeout: Duration) -> Duration { requestTimeout / 4 }

    /// How long one waits whose users had rows that were locked a moment ago, so that others wait hardly longer.
    static func briefLockTimeout(_ requestTimeout: Duration) -> Duration { requestTimeout / 40 }

    /// In a database with Citus, which cannot plan most statements without the value of the bucket. Those for which it
    /// can get a generic plan by themselves, after five executions.
    static let withCitus = [("plan_cache_mode", "auto")]
}
