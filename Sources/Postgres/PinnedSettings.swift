extension Connection {
    /// What every session sets before its first other statement, whatever the server, the database, the role or the
    /// environment have as defaults: names resolve to PostgreSQL's own functions and operators, and values are written
    /// and read in one form. `sessionSettings` come after these and may replace one.
    ///
    /// `default_transaction_read_only` is not among them: managed databases turn it on when their disk is full, and writing
    /// all the same would fill it.
    static let pinnedSettings = [
        // Anybody who may create in another schema could plant a function or an operator there that fits a call better
        // than PostgreSQL's own. docs/security.md, "Planted objects".
        ("search_path", "pg_catalog, pg_temp"),
        // With `off`, a query whose rows a policy filters is an error.
        ("row_security", "on"),
        // That a commit did not wait for the synchronous standby is only in a WARNING.
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
    ]
}
