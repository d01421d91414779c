import TestSupport
import Testing

@testable import Postgres

@Suite("A server's refusal of a session")
struct ConnectFailureMessageTests {
    @Test(
        "has the SQLSTATE, and the message in libpq's usual form",
        arguments: [
            ("user=outsider", SQLState.tooManyConnections, "too many connections for role \"outsider\""),
            ("dbname=nowhere", SQLState(rawValue: "3D000"), "database \"nowhere\" does not exist"),
        ]
    )
    func real(parameter: String, state: SQLState, text: String) async throws {
        let shared = try await TestServer.shared()
        try await onThread {
            let administrator = try DatabaseConnection.connect(shared)
            defer { administrator.close() }
            let role = "refused_\(state)"
            let parameter = parameter.replacing("outsider", with: role)
            try administrator.execute("create role \"\(role)\" login connection limit 0", deadline: soon)
            let options = ConnectionOptions(
                database: DatabaseTopology("\(shared) \(parameter)"),
                connectTimeout: waitLimit
            )
            let error = try #require(throws: PostgresError.self) { _ = try DatabaseConnection.connect(options) }
            try administrator.execute("drop role \"\(role)\"", deadline: soon)
            #expect(error.kind == .connectFailed && error.refusal == state && error.sqlState == nil)
            #expect(!error.isAboutReachability && error.isTransient)
            #expect(error.message.hasSuffix("FATAL:  " + text.replacing("outsider", with: role)), "\(error.message)")
        }
    }

    @Test("is none where no server was there, or where it starts, stops or recovers")
    func none() {
        let refused = "connection to server at \"10.0.0.1\", port 5432 failed: Connection refused\n\tIs it running?"
        #expect(ConnectFailureMessage(refused).text == refused && ConnectFailureMessage(refused).refusal == nil)
        let starting =
            "connection to server on socket \"/run/s\" failed: FATAL:  57P03: the database system is starting up"
        let message = ConnectFailureMessage(starting + "\nLOCATION:  ProcessStartupPacket, postmaster.c:2361")
        #expect(message.text == starting.replacing("57P03: ", with: "") && message.refusal == nil)
    }

    @Test("is that of any host, whatever the language of the severity")
    func severalHosts() {
        let message = ConnectFailureMessage(
            """
            connection to server at "a", port 5432 failed: ФАТАЛЬНЫЙ:  53300: извините
            LOCATION:  InitProcess, proc.c:358
            connection to server at "b", port 5432 failed: Connection refused
            """
        )
        #expect(message.refusal == .tooManyConnections)
        #expect(message.text.split(separator: "\n").count == 2 && message.text.contains("ФАТАЛЬНЫЙ:  извините"))
    }
}
