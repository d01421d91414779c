import Logging
import Postgres
import TestSupport
import Testing

@testable import Engine

@Suite("What became of a statement that failed")
struct VerdictTests {
    private let trips: ExactlyOnce = {
        let logger = Logger.silent
        let wake = WakePipe()
        let link = LaneConnection(options: ConnectionOptions(conninfo: ""), wake: wake, logger: logger)
        return ExactlyOnce(link: link, wake: wake, metrics: LaneMetrics(), logger: logger)
    }()

    @Test(
        "is not known when the connection failed",
        arguments: [PostgresError.Kind.connectionLost, .connectFailed, .timedOut, .misuse]
    )
    func lost(kind: PostgresError.Kind) {
        #expect(trips.verdict(on: PostgresError(kind, "")) == .lost)
    }

    @Test("is nothing, and it can be sent again, after a deadlock", arguments: ["40P01", "40001"])
    func rolledBack(state: String) {
        #expect(trips.verdict(on: PostgresError(.server(SQLState(rawValue: state)), "")) == .rolledBack)
    }

    @Test("is nothing, and another server may take it, when this one takes no writes")
    func movedAway() {
        #expect(trips.verdict(on: PostgresError(.server(.readOnlySQLTransaction), "")) == .movedAway)
    }

    @Test(
        "is nothing, for good, after any other refusal",
        arguments: ["22003", "23514", "P0001", "55P03", "57014", "53100", "42P01", "XX000"]
    )
    func refused(state: String) {
        #expect(trips.verdict(on: PostgresError(.server(SQLState(rawValue: state)), "")) == .refused)
    }
}
