/// One numbered step of the tables. Once it is applied somewhere, it is never changed: what has to be different is the
/// next migration's work.
public struct Migration: Sendable, Hashable {
    public let number: Int
    public let name: String
    public let sql: String

    public init(number: Int, name: String, sql: String) {
        self.number = number
        self.name = name
        self.sql = sql
    }

    /// The file below sql/.
    public var file: String { Migration.file(number: number, name: name) }

    static func file(number: Int, name: String) -> String {
        let digits = String(number)
        return "tables/" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "_" + name + ".sql"
    }
}

/// A file that may be applied any number of times, and is whenever it has changed: a function, a view, or a script.
public struct Definition: Sendable, Hashable {
    /// Below sql/, such as functions/headroom/now.sql.
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
        // A variant's name stands behind a dot.
        return parts[1] + "." + parts[2].prefix { $0 != "." }
    }
}

/// Everything that makes up a schema, in the order in which it is applied.
public struct SchemaFiles: Sendable {
    /// What has to be there before anything else, such as roles.
    public var before: [Definition]
    public var migrations: [Migration]
    /// One statement that moves objects of an application out of the way that have the names of definitions. Runs before
    /// the definitions.
    public var makeRoom: String?
    /// Applied as a whole whenever one of them, or a table, has changed.
    public var definitions: [Definition]
    /// Applied after the definitions, each when it has changed itself.
    public var after: [Definition]
    /// Applied last, whenever anything was.
    public var last: [Definition]
    /// The release that the files belong to, as MAJOR.MINOR.PATCH.
    public var release: String

    public init(
        before: [Definition] = [],
        migrations: [Migration] = [],
        makeRoom: String? = nil,
        definitions: [Definition] = [],
        after: [Definition] = [],
        last: [Definition] = [],
        release: String = "0.0.0"
    ) {
        self.before = before
        self.migrations = migrations.sorted { $0.number < $1.number }
        self.makeRoom = makeRoom
        self.definitions = definitions
        self.after = after
        self.last = last
        self.release = release
    }

    /// All that may be applied again.
    var repeatable: [Definition] { before + definitions + after + last }
}
