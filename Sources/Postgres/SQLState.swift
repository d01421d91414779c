/// PostgreSQL's five-character error code (PostgreSQL manual, appendix A). Match it in a `switch`:
/// `case .server(.uniqueViolation)`, or ask for its first two characters with `isClass`.
public struct SQLState: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    public var description: String { rawValue }

    /// Whether the code belongs to the class that its first two characters name: `isClass("22")` is a data error.
    public func isClass(_ name: String) -> Bool {
        rawValue.utf8.starts(with: name.utf8)
    }
}

extension SQLState {
    public static let successfulCompletion = SQLState(rawValue: "00000")
    /// What a WARNING carries that has no code of its own. "Canceling wait for synchronous replication" is one: the
    /// commit is local only, and the statement succeeds nevertheless.
    public static let warning = SQLState(rawValue: "01000")
    public static let numericValueOutOfRange = SQLState(rawValue: "22003")
    public static let invalidTextRepresentation = SQLState(rawValue: "22P02")
    public static let characterNotInRepertoire = SQLState(rawValue: "22021")
    public static let divisionByZero = SQLState(rawValue: "22012")
    public static let notNullViolation = SQLState(rawValue: "23502")
    public static let foreignKeyViolation = SQLState(rawValue: "23503")
    public static let uniqueViolation = SQLState(rawValue: "23505")
    public static let checkViolation = SQLState(rawValue: "23514")
    public static let readOnlySQLTransaction = SQLState(rawValue: "25006")
    public static let inFailedSQLTransaction = SQLState(rawValue: "25P02")
    public static let invalidPassword = SQLState(rawValue: "28P01")
    public static let invalidCatalogName = SQLState(rawValue: "3D000")
    public static let serializationFailure = SQLState(rawValue: "40001")
    public static let deadlockDetected = SQLState(rawValue: "40P01")
    public static let invalidSQLStatementName = SQLState(rawValue: "26000")
    public static let duplicatePreparedStatement = SQLState(rawValue: "42P05")
    /// This library's own: a pooler gives the session to other clients, too. See `SessionOwnership`.
    public static let sharedSession = SQLState(rawValue: "HR010")
    public static let insufficientPrivilege = SQLState(rawValue: "42501")
    public static let syntaxError = SQLState(rawValue: "42601")
    public static let undefinedColumn = SQLState(rawValue: "42703")
    public static let undefinedFunction = SQLState(rawValue: "42883")
    public static let undefinedTable = SQLState(rawValue: "42P01")
    public static let duplicateTable = SQLState(rawValue: "42P07")
    public static let duplicateDatabase = SQLState(rawValue: "42P04")
    public static let diskFull = SQLState(rawValue: "53100")
    public static let tooManyConnections = SQLState(rawValue: "53300")
    public static let lockNotAvailable = SQLState(rawValue: "55P03")
    public static let queryCanceled = SQLState(rawValue: "57014")
    public static let adminShutdown = SQLState(rawValue: "57P01")
    public static let crashShutdown = SQLState(rawValue: "57P02")
    public static let cannotConnectNow = SQLState(rawValue: "57P03")
    public static let databaseDropped = SQLState(rawValue: "57P04")
    /// Headroom's own: a stored value is out of range. Raised by the SQL functions, and thrown when a result is decoded.
    public static let invalidStoredValue = SQLState(rawValue: "HR006")
    public static let raiseException = SQLState(rawValue: "P0001")
}
