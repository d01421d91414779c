extension DatabaseConnection {
    /// The settings of every session before its first other statement. They make it independent of the defaults of
    /// server, database, role and environment: names resolve to PostgreSQL's own functions and operators, and values
    /// have one text form. `sessionSettings` come later and may replace one.
    ///
    /// `default_transaction_read_only` is missing on purpose: managed databases turn it on when their disk is almost
    /// full.
    static let pinnedSettings = [
        // A user that may create objects in another schema could plant a function or operator there that matches a call
        // better than PostgreSQL's own (docs/contributors/security.md, "Planted objects").
        ("search_path", "pg_catalog, pg_temp"),
        // With `off`, a query whose rows a policy filters is an error.
        ("row_security", "on"),
        // Only a WARNING reports that a commit did not wait for the synchronous standby.
        ("client_min_messages", "notice"),
        ("default_transaction_isolation", "read committed"),
        ("default_transaction_deferrable", "off"),
        ("DateStyle", "ISO, YMD"),
        ("IntervalStyle", "postgres"),
        ("TimeZone", "UTC"),
        ("bytea_output", "hex"),
        ("extra_float_digits", "1"),
        ("standard_conforming_strings", "on"),
        ("transform_null_equals", "off"),
        ("array_nulls", "on"),
        // `on` changes how the names of objects are written, which the migrator compares.
        ("quote_all_identifiers", "off"),
        // With other values, the server ends a session that waits for requests, or a transaction between two
        // statements. Lanes and the migrator limit each of their statements.
        ("idle_session_timeout", "0"),
        ("idle_in_transaction_session_timeout", "0"),
    ]

    /// The settings that PostgreSQL has since version 17.
    static let pinnedSettingsSince17 = [("transaction_timeout", "0")]
}
