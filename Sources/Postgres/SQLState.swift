/// PostgreSQL's five-character error code (PostgreSQL manual, appendix A). Match it in a `switch`:
/// `case .server(.uniqueViolation)`, or by its first two characters with `isClass`.
public struct SQLState: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    public var description: String { rawValue }

    /// Whether the code has these first two characters as its class: `isClass("22")` is a data error.
    public func isClass(_ name: String) -> Bool {
        rawValue.utf8.starts(with: name.utf8)
    }
}

extension SQLState {
    /// The code of a WARNING without a code of its own, such as "canceling wait for synchronous replication": the
    /// statement succeeds, but its commit is local only.
    public static let warning = SQLState(rawValue: "01000")
    /// A feature is missing, or "cached plan must not change result type": a prepared statement is older than what it
    /// uses.
    public static let featureNotSupported = SQLState(rawValue: "0A000")
    public static let divisionByZero = SQLState(rawValue: "22012")
    public static let invalidParameterValue = SQLState(rawValue: "22023")
    public static let foreignKeyViolation = SQLState(rawValue: "23503")
    public static let uniqueViolation = SQLState(rawValue: "23505")
    public static let readOnlySQLTransaction = SQLState(rawValue: "25006")
    public static let invalidSchemaName = SQLState(rawValue: "3F000")
    public static let serializationFailure = SQLState(rawValue: "40001")
    public static let deadlockDetected = SQLState(rawValue: "40P01")
    public static let invalidSQLStatementName = SQLState(rawValue: "26000")
    public static let duplicatePreparedStatement = SQLState(rawValue: "42P05")
    /// Headroom's own code: a pooler shares the session with other clients. See `ExclusiveSessionCheck`.
    public static let sharedSession = SQLState(rawValue: "HR010")
    public static let insufficientPrivilege = SQLState(rawValue: "42501")
    public static let undefinedColumn = SQLState(rawValue: "42703")
    public static let undefinedFunction = SQLState(rawValue: "42883")
    public static let duplicateTable = SQLState(rawValue: "42P07")
    public static let undefinedTable = SQLState(rawValue: "42P01")
    public static let tooManyConnections = SQLState(rawValue: "53300")
    public static let objectInUse = SQLState(rawValue: "55006")
    public static let lockNotAvailable = SQLState(rawValue: "55P03")
    public static let queryCanceled = SQLState(rawValue: "57014")
    public static let adminShutdown = SQLState(rawValue: "57P01")
    public static let crashShutdown = SQLState(rawValue: "57P02")
    public static let cannotConnectNow = SQLState(rawValue: "57P03")
    /// Headroom's own code: a stored value is out of range. The SQL functions raise it, and decoding a result throws
    /// it.
    public static let invalidStoredValue = SQLState(rawValue: "HR006")
    /// Headroom's own code: a row that was written is not there, because a trigger or a rule discards it.
    public static let discardedRow = SQLState(rawValue: "HR011")
    public static let noDataFound = SQLState(rawValue: "P0002")
    public static let programLimitExceeded = SQLState(rawValue: "54000")
    public static let raiseException = SQLState(rawValue: "P0001")
}
