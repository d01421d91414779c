import Postgres
import Usage

/// Reads the models or the members of all accounts with the most messages in a billing period.
public struct TopPartsReader {
    public struct Part: Sendable, Equatable {
        public var name: String
        /// Nil for a member.
        public var label: String?
        /// `open` for all open periods.
        public var period: String
        public var used: Int
        public var held: Int
        public var accounts: Int
        /// The accounts in which it is used up.
        public var blocked: Int
        /// Nil if there are several.
        public var account: String?
    }

    /// The view reads the rows of all accounts.
    private static let timeout = Duration.seconds(600)

    private let options: ConnectionOptions

    public init(database: DatabaseTopology) {
        options = .command("top", database)
    }

    /// - Parameter period: nil is all open periods.
    public func parts(_ kind: PlanLimit.Kind, in period: BillingPeriod?, limit: Int) throws(PostgresError) -> [Part] {
        var parameters = Parameters()
        parameters.append(text: kind.rawValue)
        parameters.append(text: period?.label)
        parameters.append(int64: Int64(limit))
        let result = try options.query(EmbeddedSQL.readTopParts, parameters, timeout: TopPartsReader.timeout)
        return try result.rows { row throws(PostgresError) in
            Part(
                name: try row.text("name"),
                label: try row.textOrNil("label"),
                period: try row.text("period"),
                used: Int(try row.int64("used")),
                held: Int(try row.int64("held")),
                accounts: Int(try row.int64("accounts")),
                blocked: Int(try row.int64("blocked")),
                account: try row.textOrNil("account")
            )
        }
    }
}
