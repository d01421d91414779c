/// The changes that a migration makes, or has made.
public struct MigrationPlan: Sendable, Hashable {
    public enum Change: Sendable, Hashable {
        /// A migration that is not applied yet.
        case apply(file: String)
        /// A definition that the database does not have yet.
        case create(file: String)
        /// A definition of which the database has another version.
        case replace(file: String)
        /// A function or view that no file defines.
        case drop(object: String)
        /// An object that differs from what was installed.
        case restore(AlteredObject)
        /// The rights of a role that was created after the last migration.
        case grant(role: String)
    }

    public internal(set) var changes: [Change]

    public init(changes: [Change] = []) {
        self.changes = changes
    }

    public var isEmpty: Bool { changes.isEmpty }

    /// A text such as `1 migrations applied, 3 definitions replaced`; empty without changes.
    public var summary: String {
        func count(_ isCounted: (Change) -> Bool) -> Int { changes.count { isCounted($0) } }
        let parts = [
            (count { if case .apply = $0 { true } else { false } }, "migrations applied"),
            (count { if case .create = $0 { true } else { false } }, "definitions created"),
            (count { if case .replace = $0 { true } else { false } }, "definitions replaced"),
            (count { if case .drop = $0 { true } else { false } }, "objects dropped"),
            (count { if case .restore = $0 { true } else { false } }, "objects restored"),
            (count { if case .grant = $0 { true } else { false } }, "roles given their rights"),
        ]
        return parts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    }

    /// The objects that differ from what was installed.
    public var alteredObjects: [AlteredObject] {
        changes.compactMap { if case .restore(let object) = $0 { object } else { nil } }
    }

    /// The files of which the database lacks this version.
    public var missingFiles: [String] {
        changes.compactMap { change in
            switch change {
            case .apply(let file), .create(let file), .replace(let file): file
            case .drop, .restore, .grant: nil
            }
        }
    }
}

/// The state of one file in a database.
public struct MigrationStatus: Sendable, Hashable {
    public enum State: Sendable, Hashable {
        /// The file is applied. `at` is in microseconds since 1970, by the database's clock.
        case applied(at: Int64)
        case pending
        /// The file was applied in another version than this binary's.
        case changed(at: Int64)
        /// The file was applied by another release, and this one does not have it.
        case unknown(at: Int64)
    }

    public let file: String
    public let state: State
}

/// Compares the record in a database with the files.
struct MigrationComparison {
    let files: SchemaFiles
    let migrationChecksums: [String]
    let definitionChecksums: [String]
    let record: MigrationRecord.Rows
    let altered: [AlteredObject]
    let newRoles: [String]

    /// - Throws: `.databaseNewer` or `.changedAfterApplied`.
    func plan() throws(MigrationError) -> MigrationPlan {
        try refuseNewerDatabase()
        var changes: [MigrationPlan.Change] = []
        for (migration, checksum) in zip(files.migrations, migrationChecksums) {
            if let row = record.migrations.first(where: { $0.number == migration.number }) {
                guard row.checksum == checksum else { throw .changed(migration) }
            } else {
                changes.append(.apply(file: migration.file))
            }
        }
        for (definition, checksum) in zip(files.repeatable, definitionChecksums) {
            switch record.definitions[definition.file]?.checksum {
            case nil: changes.append(.create(file: definition.file))
            case checksum: break
            default: changes.append(.replace(file: definition.file))
            }
        }
        changes += removedFiles.map { .drop(object: $0) }
        changes += altered.map { .restore($0) }
        changes += newRoles.map { .grant(role: $0) }
        return MigrationPlan(changes: changes)
    }

    /// Returns the files in the order of application; those that only the database has come last.
    func status() -> [MigrationStatus] {
        var all = zip(files.migrations, migrationChecksums).map { migration, checksum in
            let row = record.migrations.first { $0.number == migration.number }
            return MigrationStatus(file: migration.file, state: state(row?.checksum, row?.appliedAt, checksum))
        }
        all += zip(files.repeatable, definitionChecksums).map { definition, checksum in
            let row = record.definitions[definition.file]
            return MigrationStatus(file: definition.file, state: state(row?.checksum, row?.appliedAt, checksum))
        }
        let numbers = Set(files.migrations.map(\.number))
        all += record.migrations.filter { !numbers.contains($0.number) }.map { row in
            MigrationStatus(file: row.file, state: .unknown(at: row.appliedAt))
        }
        all += removedFiles.map {
            MigrationStatus(file: $0, state: .unknown(at: record.definitions[$0]?.appliedAt ?? 0))
        }
        return all
    }

    private func state(_ applied: String?, _ at: Int64?, _ checksum: String) -> MigrationStatus.State {
        guard let applied, let at else { return .pending }
        return applied == checksum ? .applied(at: at) : .changed(at: at)
    }

    var removedFiles: [String] {
        let files = Set(files.repeatable.map(\.file))
        return record.definitions.keys.filter { !files.contains($0) }.sorted()
    }

    /// Refuses a newer database, because an older binary must not restore functions that a newer one replaced.
    /// Definitions have no growing numbers, so their releases are compared.
    private func refuseNewerDatabase() throws(MigrationError) {
        let numbers = Set(files.migrations.map(\.number))
        if let unknown = record.migrations.last(where: { !numbers.contains($0.number) }) {
            throw .databaseNewer("\(unknown.file) is applied in it")
        }
        let own = Release(files.release)
        if let newer = record.definitions.values.map({ Release($0.release) }).max(), newer > own {
            throw .databaseNewer("its functions are those of release \(newer.text), and this is \(own.text)")
        }
    }
}

/// A version of the form MAJOR.MINOR.PATCH, by which releases are ordered.
struct Release: Comparable {
    let text: String
    private let parts: [Int]

    init(_ text: String) {
        self.text = text
        parts = text.split { !$0.isNumber }.prefix(3).map { Int($0) ?? .max }
    }

    static func < (one: Release, other: Release) -> Bool {
        one.parts.lexicographicallyPrecedes(other.parts)
    }

    static func == (one: Release, other: Release) -> Bool { one.parts == other.parts }
}
