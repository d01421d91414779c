import Foundation
import Postgres
import TestSupport
import Testing

@Suite("A failed connect")
struct ConnectFailureTests {
    /// - Returns: the error, and how long it took.
    private func fail(
        _ conninfo: String,
        timeout: Duration = .milliseconds(500)
    ) async throws -> (error: PostgresError, elapsed: Duration) {
        try await onThread {
            let start = ContinuousClock.now
            let options = ConnectionOptions(database: DatabaseTopology(conninfo), connectTimeout: timeout)
            let error = #expect(throws: PostgresError.self) { _ = try DatabaseConnection.connect(options) }
            return (try #require(error), ContinuousClock.now - start)
        }
    }

    @Test("a refused connection fails at once") func refused() async throws {
        let listener = try SilentListener()
        listener.stop()
        let (error, _) = try await fail("host=127.0.0.1 port=\(listener.port) user=u password=hunter2 dbname=d")
        #expect(error.kind == .connectFailed && error.isTransient && error.hint != nil)
        #expect(!"\(error)".contains("hunter2"))
    }

    @Test("a silent server causes a timeout") func silent() async throws {
        let listener = try SilentListener()
        let (error, elapsed) = try await fail("host=127.0.0.1 port=\(listener.port) user=u dbname=d")
        #expect(error.kind == .connectFailed && error.message.contains("did not answer in time"))
        #expect(elapsed >= .milliseconds(450))
    }

    @Test("the next host is tried after a refusal and after a timeout") func nextHost() async throws {
        let refusing = try SilentListener()
        refusing.stop()
        let silent = try SilentListener()
        let shared = try await TestServer.shared()
        let socket = try #require(shared.split(separator: " ").first { $0.hasPrefix("host=") }).dropFirst(5)
        let ports = "\(refusing.port),\(silent.port),5432"
        let conninfo = "host=127.0.0.1,127.0.0.1,\(socket) port=\(ports) user=headroom dbname=headroom"
        try await onThread {
            let options = ConnectionOptions(
                database: DatabaseTopology(conninfo + " target_session_attrs=read-write"),
                connectTimeout: .seconds(9)
            )
            // All of its time would pass if the silent one had more than its share.
            let connection = try DatabaseConnection.connect(options)
            let result = try connection.query("SELECT 1", deadline: .now + waitLimit)
            #expect(try result.int32(0, 0) == 1)
        }
    }

    @Test("the error names a missing database") func missingDatabase() async throws {
        let conninfo = try await TestServer.shared().replacing("dbname=headroom", with: "dbname=nowhere")
        let (error, _) = try await fail(conninfo, timeout: waitLimit)
        #expect(error.kind == .connectFailed && error.message.contains("nowhere"))
    }

    @Test(
        "the error does not quote an invalid connection string",
        arguments: ["host=x passwort=hunter2", "postgresql://u:hunter2@[::1/db", "postgres://u:%zzhunter2@h/db"]
    )
    func invalidConnectionString(conninfo: String) async throws {
        let (error, _) = try await fail(conninfo)
        #expect(error.kind == .connectFailed && !"\(error)".contains("hunter2"))
        #expect("\(DatabaseTopology(conninfo))" == "(connection string invalid)")
    }

    @Test("a redacted connection string has host, port, database and user only") func redaction() {
        let uri = "postgresql://ada:hunter2@db1:5433,db2:5434/usage?sslmode=require&target_session_attrs=primary"
        #expect("\(DatabaseTopology(uri))" == "host=db1,db2 port=5433,5434 dbname=usage user=ada")
        #expect("\(DatabaseTopology("user=ada password='hunter2 x' host=/run/pg"))" == "host=/run/pg user=ada")
        #expect("\(DatabaseTopology(""))" == "(libpq's defaults)")
    }
}

/// Listens, lets the kernel accept, and never sends a byte.
final class SilentListener: Sendable {
    private let descriptor: Int32
    let port: UInt16

    init() throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let isListening = withUnsafeMutableBytes(of: &address) { bytes in
            guard let pointer = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress else { return false }
            return bind(descriptor, pointer, length) == 0 && listen(descriptor, 8) == 0
                && getsockname(descriptor, pointer, &length) == 0
        }
        guard isListening else { throw POSIXError(.EADDRINUSE) }
        port = UInt16(bigEndian: address.sin_port)
    }

    /// From now on the port refuses.
    func stop() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    deinit {
        close(descriptor)
    }
}
