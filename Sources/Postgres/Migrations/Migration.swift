/// One numbered step of the tables. It never changes once it is released: a later migration makes further changes.
public struct Migration: Sendable, Hashable {
    public let number: Int
    public let name: String
    public let sql: String

    public init(number: Int, name: String, sql: String) {
        self.number = number
        self.name = name
        self.sql = sql
    }

    /// The path of the file below sql/.
    public var file: String { Migration.file(number: number, name: name) }

    static func file(number: Int, name: String) -> String {
        let digits = String(number)
        return "tables/" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "_" + name + ".sql"
    }
}

/// A file that is applied again whenever it has changed: a function, a view, or a script.
public struct Definition: Sendable, Hashable {
    /// The path below sql/, such as triggers.sql. For a function or a view it lacks the subject:
    /// functions/headroom/now.sql.
    public let file: String
    public let sql: String

    public init(file: String, sql: String) {
        self.file = file
        self.sql = sql
    }
}

extension Definition {
    /// The function or view that a file defines: `headroom.now` for functions/headroom/now.sql; nil for a script.
    static func object(of file: String) -> String? {
        let parts = file.split(separator: "/")
        guard parts.count == 3, parts[0] == "functions" else { return nil }
        // The name of an overload has a suffix after a dot.
        return parts[1] + "." + parts[2].prefix { $0 != "." }
    }
}

/// All files of a schema, in the order in which they are applied.
public struct SchemaFiles: Sendable {
    /// Files to apply first, such as roles.
    public var before: [Definition]
    public var migrations: [Migration]
    /// One statement that renames an application's objects whose names the definitions need. It runs before the
    /// definitions.
    public var renameConflicts: String?
    /// Files that are all applied whenever one of them, or a table, has changed.
    public var definitions: [Definition]
    /// Files that are applied after the definitions, each only if it has changed.
    public var after: [Definition]
    /// Files that are applied last, whenever anything was applied.
    public var last: [Definition]
    /// The role to which all objects belong. It is nil in tests of the migrator: then nothing is compared or handed
    /// over.
    public var owner: SchemaOwner?
    /// The release that the files belong to, as MAJOR.MINOR.PATCH.
    public var release: String

    public init(
        before: [Definition] = [],
        migrations: [Migration] = [],
        renameConflicts: String? = nil,
        definitions: [Definition] = [],
        after: [Definition] = [],
        last: [Definition] = [],
        owner: SchemaOwner? = nil,
        release: String = "0.0.0"
    ) {
        self.before = before
        self.migrations = migrations.sorted { $0.number < $1.number }
        self.renameConflicts = renameConflicts
        self.definitions = definitions
        self.after = after
        self.last = last
        self.owner = owner
        self.release = release
    }

    /// All files that may be applied again.
    var repeatable: [Definition] { before + definitions + after + last }
}

/// A role that owns a schema, and cannot log in.
public struct SchemaOwner: Sendable {
    public var role: String
    /// The statement that gives the login the role's rights until the end of the transaction. It may run several times.
    public var become: String
    /// The statement that takes the rights back.
    public var resign: String
    /// A query of the objects whose present state must be the installed one: name, and facts as JSON
    /// (`MigrationRecord.alteredObjects`).
    public var installedObjects: String
    /// A query of the names of roles that lack the rights that the files grant to them.
    public var newRoles: String

    public init(role: String, become: String, resign: String, installedObjects: String, newRoles: String) {
        self.role = role
        self.become = become
        self.resign = resign
        self.installedObjects = installedObjects
        self.newRoles = newRoles
    }
}
