import Postgres
import TestSupport
import Testing

@Suite("A connection")
struct ConnectionTests {
    private func expectError(
        _ kind: PostgresError.Kind,
        sourceLocation: SourceLocation = #_sourceLocation,
        _ body: () throws -> Void
    ) -> PostgresError? {
        let error = #expect(throws: PostgresError.self, sourceLocation: sourceLocation) { try body() }
        #expect(error?.kind == kind, sourceLocation: sourceLocation)
        return error
    }

    private func expectAlive(_ connection: DatabaseConnection) throws {
        let result = try connection.query("SELECT 1", deadline: soon)
        #expect(try result.int32(0, 0) == 1)
    }

    @Test("has the server's version") func serverVersion() async throws {
        try await connected { connection in
            #expect(connection.serverVersion >= 140_000)
            #expect(connection.socket >= 0 && connection.isUsable)
        }
    }

    @Test("applies session settings and the application name") func sessionSettings() async throws {
        let settings = [("statement_timeout", "1234ms"), ("lock_timeout", "56ms")]
        let options = ConnectionOptions(
            database: DatabaseTopology(try await TestServer.shared()),
            connectTimeout: waitLimit,
            applicationName: "lane 1",
            sessionSettings: settings
        )
        try await onThread {
            let connection = try DatabaseConnection.connect(options)
            let sql = """
                SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
                    current_setting('application_name'), current_setting('client_encoding')
                """
            let result = try connection.query(sql, deadline: soon)
            #expect((0..<4).map { result.text(0, $0) } == ["1234ms", "56ms", "lane 1", "UTF8"])
        }
    }

    @Test("a refused session setting is a connect failure") func refusedSetting() async throws {
        let options = ConnectionOptions(
            database: DatabaseTopology(try await TestServer.shared()),
            connectTimeout: waitLimit,
            sessionSettings: [("no_such_setting", "1")]
        )
        try await onThread {
            let error = expectError(.connectFailed) { _ = try DatabaseConnection.connect(options) }
            #expect(error?.message.contains("no_such_setting") == true)
        }
    }

    @Test("sets the role after the settings, which stay") func role() async throws {
        let options = ConnectionOptions(
            database: DatabaseTopology(try await TestServer.shared()),
            connectTimeout: waitLimit,
            // What the login may set, and the role may not.
            sessionSettings: [("log_min_messages", "error"), ("synchronous_commit", "on")],
            role: "pg_signal_backend"
        )
        try await onThread {
            let connection = try DatabaseConnection.connect(options)
            let sql = """
                SELECT current_user::text, current_setting('log_min_messages'), current_setting('synchronous_commit')
                """
            let result = try connection.query(sql, deadline: soon)
            #expect((0..<3).map { result.text(0, $0) } == ["pg_signal_backend", "error", "on"])
            // Nor is it forbidden to set more, later.
            try connection.execute("SET synchronous_commit = remote_apply", deadline: soon)
            _ = expectError(.server(.insufficientPrivilege)) {
                try connection.execute("SET log_min_messages = 'info'", deadline: soon)
            }
        }
    }

    @Test("no default of the role or database ends a session that waits, or changes what a statement means")
    func pinnedSettings() async throws {
        let settings = [
            ("idle_session_timeout", "600000", "0"), ("idle_in_transaction_session_timeout", "600000", "0"),
            ("array_nulls", "off", "on"), ("quote_all_identifiers", "on", "off"),
            ("search_path", "public", "pg_catalog, pg_temp"),
        ]
        let conninfo = try await TestServer.emptyDatabase()
        try await onThread {
            let administrator = try DatabaseConnection.connect(conninfo)
            let name = try administrator.query("SELECT current_database()::text", deadline: soon).text(0, 0)
            for (setting, value, _) in settings {
                try administrator.execute("ALTER DATABASE \(name) SET \(setting) = \(value)", deadline: soon)
            }
            let connection = try DatabaseConnection.connect(conninfo)
            for (setting, _, pinned) in settings {
                #expect(try connection.query("SHOW \(setting)", deadline: soon).text(0, 0) == pinned, "\(setting)")
            }
        }
    }

    @Test("a role that is not granted is a connect failure with the command to run") func missingRole() async throws {
        let conninfo = try await TestServer.shared()
        try await onThread {
            let administrator = try DatabaseConnection.connect(conninfo)
            try administrator.execute("CREATE ROLE outsider LOGIN", deadline: soon)
            defer { try? administrator.execute("DROP ROLE outsider", deadline: soon) }
            let options = ConnectionOptions(
                database: DatabaseTopology(conninfo + " user=outsider"),
                connectTimeout: waitLimit,
                role: "pg_monitor"
            )
            let error = expectError(.connectFailed) { _ = try DatabaseConnection.connect(options) }
            #expect(error?.sqlState == .insufficientPrivilege)
            #expect(error?.hint == #"have an administrator run: grant pg_monitor to "outsider""#)
        }
    }

    @Test("a server error has its SQLSTATE, and the connection stays usable") func serverError() async throws {
        try await connected { connection in
            let error = expectError(.server(.divisionByZero)) {
                _ = try connection.query("SELECT 1 / 0", deadline: soon)
            }
            #expect(error?.sqlState?.isClass("22") == true && error?.isTransient == false)
            #expect(error?.message == "division by zero")
            let undefined = expectError(.server(.undefinedTable)) {
                try connection.execute("SELECT 1; SELECT 2 FROM no_such_table", deadline: soon)
            }
            #expect(undefined?.position == 25)
            let raised = expectError(.server(.raiseException)) {
                let raise = "DO $$BEGIN RAISE 'no' USING DETAIL = 'because', HINT = 'try later'; END$$"
                try connection.execute(raise, deadline: soon)
            }
            #expect(raised?.detail == "because" && raised?.hint == "try later")
            try expectAlive(connection)
        }
    }

    @Test("lock and timeout errors are transient") func transient() async throws {
        try await connected { connection in
            let error = expectError(.server(.queryCanceled)) {
                try connection.execute("SET statement_timeout = 1; SELECT pg_sleep(30)", deadline: soon)
            }
            #expect(error?.isTransient == true)
        }
    }

    @Test("a deadline ends the connection and the statement") func deadline() async throws {
        let conninfo = try await TestServer.shared()
        let process = try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            let process = try connection.query("SELECT pg_backend_pid()", deadline: soon).int32(0, 0)
            // No test runs for the hour that the statement takes.
            let error = expectError(.timedOut) {
                _ = try connection.query("SELECT pg_sleep(3600)", deadline: .now + .milliseconds(50))
            }
            #expect(error?.isTransient == true && !connection.isUsable && connection.socket == -1)
            _ = expectError(.connectionLost) { _ = try connection.query("SELECT 1", deadline: soon) }
            return process
        }
        let observer = TestObserver(conninfo)
        try await waitUntil("the statement was cancelled") {
            try await observer.count("pg_stat_activity WHERE pid = \(process)") == 0
        }
    }

    @Test("a connection that is kept when it is late can be used when the statement has ended")
    func late() async throws {
        try await connected { connection in
            connection.isKeptWhenLate = true
            let process = try connection.query("SELECT pg_backend_pid()", deadline: soon).int32(0, 0)
            try connection.execute("BEGIN; CREATE TEMP TABLE gone ()", deadline: soon)
            // Ends by itself if the cancellation arrives before it has begun.
            _ = expectError(.timedOut) { _ = try connection.query("SELECT pg_sleep(0.1)", deadline: .now) }
            #expect(!connection.isUsable)
            _ = expectError(.timedOut) { _ = try connection.query("SELECT 1", deadline: soon) }
            while try connection.settle() == nil {}
            #expect(connection.isUsable)
            _ = expectError(.server(.undefinedTable)) { try connection.execute("SELECT FROM gone", deadline: soon) }
            #expect(try connection.query("SELECT pg_backend_pid()", deadline: soon).int32(0, 0) == process)
            _ = expectError(.misuse) { _ = try connection.settle() }
        }
    }

    @Test("statements are prepared together, and none if one is refused") func preparingTogether() async throws {
        try await connected { connection in
            let statements = (1...3).map { PreparedQuery(name: "number\($0)", sql: "SELECT \($0)") }
            try connection.prepare(statements, deadline: soon)
            for number in 1...3 {
                try connection.send(prepared: "number\(number)", Parameters())
                #expect(try connection.awaitResult(until: soon)?.int32(0, 0) == Int32(number))
            }
            _ = expectError(.server(.undefinedTable)) {
                try connection.prepare([PreparedQuery(name: "none", sql: "SELECT FROM missing")], deadline: soon)
            }
            try expectAlive(connection)
        }
    }

    @Test("awaitResult returns nil until the result has arrived") func awaiting() async throws {
        try await connected { connection in
            try connection.prepare("wait", "SELECT pg_sleep($1)", deadline: soon)
            try connection.prepare("one", "SELECT 1", deadline: soon)
            try connection.execute("SELECT pg_advisory_xact_lock_shared(1)", deadline: soon)
            try connection.send(prepared: "one", Parameters())
            var looks = 0
            var result: QueryResult?
            while result == nil {
                result = try connection.awaitResult(until: .now)
                looks += 1
            }
            #expect(try looks >= 1 && result?.int32(0, 0) == 1)
            _ = expectError(.misuse) { _ = try connection.awaitResult(until: .now) }
        }
    }

    @Test("a cancelled statement fails, and the next one succeeds") func cancellation() async throws {
        let conninfo = try await TestServer.shared()
        try await connected { connection in
            let process = try connection.query("SELECT pg_backend_pid()", deadline: soon).int32(0, 0)
            try connection.prepare("sleep", "SELECT pg_sleep(3600)", deadline: soon)
            for _ in 0..<5 {
                try connection.send(prepared: "sleep", Parameters())
                let early = try connection.awaitResult(until: .now)
                #expect(early == nil)
                // A cancellation that arrives before the statement has begun cancels nothing.
                try onOtherThreadOf(
                    conninfo,
                    """
                    DO $$
                    BEGIN
                        WHILE NOT EXISTS (
                            SELECT FROM pg_stat_activity WHERE pid = \(process) AND wait_event = 'PgSleep'
                        ) LOOP
                            PERFORM pg_sleep(0.001), pg_stat_clear_snapshot();
                        END LOOP;
                    END
                    $$
                    """
                )
                connection.cancel()
                _ = expectError(.server(.queryCanceled)) { _ = try connection.awaitResult(until: soon) }
                try expectAlive(connection)
            }
        }
    }

    @Test("a terminated session is a lost connection with the server's reason") func terminated() async throws {
        let conninfo = try await TestServer.shared()
        let observer = TestObserver(conninfo)
        let process = try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            let process = try connection.query("SELECT pg_backend_pid()", deadline: soon).int32(0, 0)
            try connection.prepare("sleep", "SELECT pg_sleep(3600)", deadline: soon)
            try connection.send(prepared: "sleep", Parameters())
            let early = try connection.awaitResult(until: .now)
            #expect(early == nil)
            try onOtherThreadOf(conninfo, "SELECT pg_terminate_backend(\(process))")
            let error = expectError(.connectionLost) { _ = try connection.awaitResult(until: soon) }
            #expect(error?.sqlState == .adminShutdown && error?.isTransient == true && !connection.isUsable)
            return process
        }
        #expect(try await observer.count("pg_stat_activity WHERE pid = \(process)") == 0)
    }

    @Test("a commit that another server has not confirmed is lost, whether an error follows or not")
    func lostCommit() async throws {
        for end in ["", "raise exception 'could not commit transaction for shard 1';"] {
            let session = try await Session.open(TestServer.shared())
            let error = await #expect(throws: PostgresError.self) {
                try await session.execute(
                    "do $$ begin raise warning 'failed to commit transaction on 10.0.0.1:5432'; \(end) end $$"
                )
            }
            #expect(error?.kind == .connectionLost)
        }
    }

    @Test("an error after a commit does not say that the transaction was rolled back")
    func errorAfterCommit() async throws {
        try await connected { connection in
            _ = expectError(.connectionLost) { try connection.execute("begin; commit; select 1 / 0", deadline: soon) }
            #expect(!connection.isUsable)
        }
    }

    @Test("a result has the warnings of its own statement only") func warnings() async throws {
        try await connected { connection in
            try connection.execute(
                """
                CREATE FUNCTION pg_temp.warn(notices int) RETURNS int LANGUAGE plpgsql AS $$
                BEGIN
                    FOR i IN 1..notices LOOP RAISE NOTICE 'notice %', i; END LOOP;
                    RAISE WARNING 'not replicated';
                    RETURN 1;
                END$$
                """,
                deadline: soon
            )
            let few = try connection.query("SELECT pg_temp.warn(1)", deadline: soon)
            #expect(few.warnings.map(\.severity) == ["NOTICE", "WARNING"])
            #expect(few.warnings.last?.sqlState == .warning && few.warnings.last?.message == "not replicated")
            let next = try connection.query("SELECT 1", deadline: soon)
            #expect(next.warnings.isEmpty)
            let many = try connection.query("SELECT pg_temp.warn(10000)", deadline: soon)
            #expect(many.warnings.count <= 64 && many.warnings.contains { $0.sqlState == .warning })
        }
    }

    @Test("both directions of the socket may be full at once") func fullBuffers() async throws {
        try await connected { connection in
            var parameters = Parameters()
            parameters.append(text: String(repeating: "x", count: 8_000_000))
            let result = try connection.query("SELECT $1 || $1", parameters, deadline: soon)
            #expect(result.bytes(0, 0).count == 16_000_000)
        }
    }

    @Test("misuse is an error, and the connection stays usable") func misuse() async throws {
        try await connected { connection in
            try connection.prepare("one", "SELECT 1", deadline: soon)
            try connection.send(prepared: "one", Parameters())
            _ = expectError(.misuse) { try connection.send(prepared: "one", Parameters()) }
            let result = try connection.awaitResult(until: soon)
            #expect(try result?.int32(0, 0) == 1)
            connection.cancel()  // nothing is under way: no effect
            let affected = try connection.query("CREATE TEMP TABLE t AS SELECT generate_series(1, 7)", deadline: soon)
            #expect(affected.affectedRows == 7)
            connection.close()
            connection.close()
        }
    }

    @Test("COPY is refused") func copy() async throws {
        try await connected { connection in
            _ = expectError(.misuse) { try connection.execute("COPY (SELECT 1) TO STDOUT", deadline: soon) }
            #expect(!connection.isUsable)
        }
    }
}

/// From a thread that holds a connection already: a second one, for one statement.
func onOtherThreadOf(_ conninfo: String, _ sql: String) throws {
    let connection = try DatabaseConnection.connect(conninfo)
    defer { connection.close() }
    _ = try connection.query(sql, deadline: .now + waitLimit)
}

/// Looks at the server from outside the connection under test.
struct TestObserver: Sendable {
    let conninfo: String

    init(_ conninfo: String) { self.conninfo = conninfo }

    func count(_ table: String) async throws -> Int64 {
        try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            return try connection.query("SELECT count(*) FROM \(table)", deadline: .now + waitLimit).int64(0, 0)
        }
    }
}
