// The steps within the transaction of a migration.

extension Migrator {
    /// Applies missing and changed files.
    ///
    /// - Returns: the changes that were made.
    func apply(
        _ record: MigrationRecord,
        reinstalls: Bool,
        _ warnings: inout [String]
    ) throws(MigrationError) -> MigrationPlan {
        let comparison = try prepareRecord(record)
        var plan = try comparison.plan()
        guard !plan.isEmpty || reinstalls else { return plan }
        let changed = Set(plan.missingFiles)
        let altered = plan.alteredObjects
        let connection = record.connection
        if !altered.isEmpty {
            try execute("SELECT pg_catalog.set_config('\(schema).is_restoring', 'yes', true)", connection)
            warnings += altered.map { "restored \($0)" }
        }

        for definition in files.before { _ = try execute(definition.file, definition.sql, connection) }
        for (migration, checksum) in zip(files.migrations, comparison.migrationChecksums)
        where changed.contains(migration.file) {
            warnings += try apply(migration, checksum: checksum, record)
        }
        if let statement = files.renameConflicts {
            warnings += try renameConflicts(statement, connection)
        }
        for definition in files.definitions { _ = try execute(definition.file, definition.sql, connection) }
        for definition in files.after where changed.contains(definition.file) || !altered.isEmpty {
            _ = try execute(definition.file, definition.sql, connection)
        }
        let dropped = try dropRemoved(comparison, record)
        for definition in files.last { _ = try execute(definition.file, definition.sql, connection) }

        do throws(PostgresError) {
            try record.replaceDefinitions(
                files.repeatable.map(\.file),
                checksums: comparison.definitionChecksums,
                release: files.release
            )
            if let owner = files.owner { try record.recordInstalledObjects(owner) }
        } catch {
            throw .database("the applied files cannot be recorded", error)
        }
        // The names of the dropped objects replace the dropped files of the plan.
        plan.changes.removeAll { if case .drop = $0 { true } else { false } }
        plan.changes += dropped.map { .drop(object: $0) }
        return plan
    }

    private func prepareRecord(_ record: MigrationRecord) throws(MigrationError) -> MigrationComparison {
        if let owner = files.owner { try record.refuseForeignOwner(owner) }
        var isOutdated = false
        do throws(PostgresError) {
            switch try record.state() {
            case .missing: try record.create()
            case .current:
                if let owner = files.owner { try record.connection.execute(owner.become, deadline: record.deadline) }
                try record.lock()
            case .outdated: isOutdated = true
            }
            if !isOutdated { return try comparison(record, rows: try record.rows()) }
        } catch {
            switch error.kind {
            case .server(.lockNotAvailable): throw .lockTimedOut(after: lockTimeout, error)
            case .server(.uniqueViolation), .server(.duplicateTable): throw .createdConcurrently(error)
            default: throw .database("the record of applied files cannot be prepared", error)
            }
        }
        throw .outdated(schema: schema)
    }

    /// Executes a step of the transaction that belongs to no file.
    func execute(_ sql: String?, _ connection: DatabaseConnection) throws(MigrationError) {
        guard let sql else { return }
        do throws(PostgresError) {
            try connection.execute(sql, deadline: .now + lockTimeout + .seconds(30))
        } catch {
            throw .database("a step of the migration failed", error)
        }
    }

    /// Applies a migration. It inserts the row first: if the lock ever failed to exclude a second instance, the primary
    /// key would make that instance wait and then fail before it changes anything.
    private func apply(
        _ migration: Migration,
        checksum: String,
        _ record: MigrationRecord
    ) throws(MigrationError) -> [String] {
        do throws(PostgresError) {
            try record.insert(migration, checksum: checksum)
        } catch {
            throw .failed(migration.file, migration.sql, at: 0, error)
        }
        return try execute(migration.file, migration.sql, record.connection)
    }

    /// Executes the statements of a file one by one.
    ///
    /// - Returns: the warnings that the file raises.
    private func execute(
        _ file: String,
        _ sql: String,
        _ connection: DatabaseConnection
    ) throws(MigrationError) -> [String] {
        whenBegun(file)
        var warnings: [String] = []
        for statement in SQLScript.statements(of: sql) {
            do throws(PostgresError) {
                let notices = try connection.notices(executing: statement.text, deadline: .now + statementTimeout)
                warnings += Migrator.warnings(of: notices)
            } catch {
                throw .failed(file, sql, at: statement.offset, error)
            }
            guard connection.isInTransaction else { throw .endsTransaction(file) }
        }
        return warnings
    }

    private func renameConflicts(_ sql: String, _ connection: DatabaseConnection) throws(MigrationError) -> [String] {
        do throws(PostgresError) {
            return Migrator.warnings(of: try connection.query(sql, deadline: .now + statementTimeout).warnings)
        } catch {
            throw .database("an application's objects cannot be renamed", error)
        }
    }

    /// Returns the warnings that were raised by SQL, without PostgreSQL's own.
    private static func warnings(of notices: [Warning]) -> [String] {
        notices.filter { $0.severity == "WARNING" && $0.sqlState == .warning }.map(\.message)
    }

    /// Drops views without a file, and functions with the name of a definition whose row in the catalog is older than
    /// this transaction. So the old version of a function whose parameters changed is dropped, too.
    private func dropRemoved(
        _ comparison: MigrationComparison,
        _ record: MigrationRecord
    ) throws(MigrationError) -> [String] {
        var dropped: [String] = []
        guard !comparison.record.definitions.isEmpty else { return [] }
        let removed = comparison.removedFiles.compactMap { Definition.object(of: $0) }
        let named = removed + files.definitions.compactMap { Definition.object(of: $0.file) }
        for (kind, query, names) in [("VIEW", Migrator.oldViews, removed), ("ROUTINE", Migrator.oldRoutines, named)] {
            var list = ""
            do throws(PostgresError) {
                var parameters = Parameters()
                parameters.append(text: schema)
                parameters.appendTexts(count: names.count) { names[$0] }
                let result = try record.connection.query(query, parameters, deadline: record.deadline)
                let objects = (0..<result.rowCount).map { result.text($0, 0) }
                guard !objects.isEmpty else { continue }
                // One statement drops them all, because they may depend on one another.
                list = "\(kind) " + objects.joined(separator: ", ")
                try record.connection.execute("DROP \(list)", deadline: record.deadline)
                dropped += objects.map { "\(kind) \($0)" }
            } catch {
                throw .notDropped(list, error)
            }
        }
        return dropped
    }

    /// Views that no file defines any more. $1: the product's own schema; $2: names of definitions whose files were
    /// removed.
    private static let oldViews = """
        SELECT views.oid::regclass::text
        FROM pg_class AS views
        JOIN pg_namespace AS namespace ON namespace.oid = views.relnamespace
        JOIN pg_namespace AS own ON own.nspname = $1 AND own.nspowner = views.relowner
        WHERE views.relkind = 'v' AND namespace.nspname || '.' || views.relname = ANY ($2)
        ORDER BY 1
        """

    /// Functions that this transaction has not created. $1: the product's own schema; $2: names of definitions, with
    /// those whose files were removed. The product's functions in other schemas belong to the schema's owner, and are
    /// SECURITY DEFINER.
    private static let oldRoutines = """
        SELECT routines.oid::regprocedure::text
        FROM pg_proc AS routines
        JOIN pg_namespace AS namespace ON namespace.oid = routines.pronamespace
        JOIN pg_namespace AS own ON own.nspname = $1
        WHERE routines.xmin <> pg_current_xact_id()::xid AND namespace.nspname || '.' || routines.proname = ANY ($2)
            AND (namespace.oid = own.oid OR routines.proowner = own.nspowner AND routines.prosecdef)
        ORDER BY 1
        """
}
