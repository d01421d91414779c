/// One numbered step of the schema. Once applied somewhere it is never changed: what has to be different is the next
/// migration's work.
public struct Migration: Sendable, Hashable {
    public let number: Int
    public let name: String
    public let sql: String
    /// One statement that makes room for it in a database that was somebody's before: runs in the same transaction. It
    /// is no part of the schema, so it may be changed.
    public let preparation: String?

    public init(number: Int, name: String, sql: String, preparation: String? = nil) {
        self.number = number
        self.name = name
        self.sql = sql
        self.preparation = preparation
    }

    /// The file below sql/migrations.
    public var fileName: String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits + "_" + name + ".sql"
    }
}

/// Where a database stands as to one migration.
public struct MigrationStatus: Sendable, Hashable {
    public enum State: Sendable, Hashable {
        /// Microseconds since 1970, by the database's clock.
        case applied(at: Int64)
        case pending
        /// Applied, but not with the text that this binary carries.
        case changed(at: Int64)
        /// Applied by a newer binary; this one does not know it.
        case unknown(at: Int64)
    }

    public let number: Int
    public let name: String
    public let state: State

    /// The file below sql/migrations.
    public var fileName: String { Migration(number: number, name: name, sql: "").fileName }

    public var appliedAt: Int64? {
        switch state {
        case .applied(let at), .changed(let at), .unknown(let at): at
        case .pending: nil
        }
    }
}
