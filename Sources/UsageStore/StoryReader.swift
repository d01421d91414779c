import Postgres
import Usage

/// Reads what is on record about a user. Blocks; run it on a thread of its own.
public struct StoryReader {
    public struct Event: Sendable {
        public var at: Instant
        public var what: String
        public var detail: String?
        public var actor: String?
        public var reason: String?
    }

    private let options: ConnectionOptions

    public init(databaseURL: String) {
        options = ConnectionOptions(
            conninfo: databaseURL,
            connectTimeout: .seconds(5),
            applicationName: "headroom audit"
        )
    }

    /// The newest `limit` events, in the order in which they happened.
    public func events(of user: UserID, limit: Int) throws(PostgresError) -> [Event] {
        let connection = try Connection.connect(options)
        defer { connection.close() }
        var parameters = Parameters()
        parameters.append(uuid: (user.high, user.low))
        parameters.append(int64: Int64(limit))
        let result = try connection.query(EmbeddedSQL.readStory, parameters, deadline: .now + .seconds(30))
        func text(_ row: Int, _ column: Int) -> String? {
            result.isNull(row, column) ? nil : result.text(row, column)
        }
        return (0..<result.rowCount).map { row in
            Event(
                at: Instant(microsecondsSince1970: result.timestamp(row, 0)),
                what: text(row, 1) ?? "",
                detail: text(row, 2),
                actor: text(row, 3),
                reason: text(row, 4)
            )
        }
    }
}
