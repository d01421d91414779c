import Foundation
import HeadroomClient
import NIOCore
import Synchronization

/// The service as a process of its own, which a test can kill, stop and start again on the same port.
public final class ServiceProcess: Sendable {
    public struct DidNotStart: Error {}

    public let endpoint: HeadroomClient.Endpoint
    /// The port of the HTTP server; nil if it is off.
    public let httpPort: Int?
    private let databaseURL: String
    private let arguments: [String]
    private let environment: [String: String]
    private let process: Mutex<Process>

    /// Starts a service on a free port.
    ///
    /// - Parameters:
    ///   - databaseURL: the default is a new, migrated database.
    ///   - http: whether it has an HTTP server, on a free port.
    ///   - environment: variables in addition to the database's URL.
    ///   - arguments: additional arguments of `headroom serve`.
    public static func start(
        databaseURL: String? = nil,
        http: Bool = false,
        environment: [String: String] = [:],
        _ arguments: String...
    ) async throws -> ServiceProcess {
        let url: String
        if let databaseURL { url = databaseURL } else { url = try await TestServer.migratedDatabase() }
        let httpAddress = http ? "127.0.0.1:\(try await freePort())" : "off"
        let listenAddress = "127.0.0.1:\(try await freePort())"
        let launched = try await launch(url, listenAddress, ["--http", httpAddress] + arguments, environment)
        return ServiceProcess(url, arguments, environment, launched)
    }

    private init(_ url: String, _ arguments: [String], _ environment: [String: String], _ launched: Launched) {
        databaseURL = url
        self.environment = environment
        process = Mutex(launched.process)
        endpoint = launched.endpoint
        httpPort = launched.http?.port
        // A restarted service has the same ports.
        self.arguments = ["--http", launched.http.map(\.description) ?? "off"] + arguments
    }

    private struct Launched {
        var process: Process
        var endpoint: HeadroomClient.Endpoint
        var http: HeadroomClient.Endpoint?
    }

    deinit {
        process.withLock { _ = kill($0.processIdentifier, SIGKILL) }
    }

    public var conninfo: String { databaseURL }

    /// Kills the process by SIGKILL and waits for its end.
    public func crash() async throws {
        let identifier = process.withLock { process in
            kill(process.processIdentifier, SIGKILL)
            return process.processIdentifier
        }
        try await waitUntil("the service has ended") {
            self.process.withLock { !$0.isRunning } || kill(identifier, 0) != 0
        }
    }

    /// Lets the service drain (SIGTERM), and waits for its end.
    public func terminate() async throws {
        process.withLock { _ = kill($0.processIdentifier, SIGTERM) }
        try await waitUntil("the service has ended") { self.process.withLock { !$0.isRunning } }
    }

    /// Stops the process as if the machine hung (SIGSTOP), or continues it.
    public func pause(_ isPaused: Bool) {
        process.withLock { _ = kill($0.processIdentifier, isPaused ? SIGSTOP : SIGCONT) }
    }

    /// Starts the service again on the same ports.
    public func restart() async throws {
        let launched = try await ServiceProcess.launch(databaseURL, "\(endpoint)", arguments, environment)
        process.withLock { $0 = launched.process }
    }

    /// Longer than the defaults, because a machine that is busy with other tests may delay a proxy.
    private static let timeouts = [
        "first-request", "incomplete-request", "output", "authentication", "tls-handshake",
    ].flatMap { ["--\($0)-timeout-ms", "120000"] }

    /// Creates a token as an operator does, and waits until the service accepts it.
    public func token(_ scopes: String...) async throws -> String {
        let token = try Process.run(
            builtProgram("headroom"),
            ["token", "create", "backend"] + scopes.flatMap { ["--scope", $0] },
            environment: ["HEADROOM_DATABASE_URL": databaseURL]
        ).trimmingCharacters(in: .whitespacesAndNewlines)
        func present(_ configuration: inout HeadroomClient.Configuration) {
            configuration.credentials = HeadroomClient.Credentials(token: token)
        }
        try await HeadroomClient.with(self, configure: present) { client in
            try await waitUntil("the service accepts the token") { (try? await client.info()) != nil }
        }
        return token
    }

    private static func launch(
        _ databaseURL: String,
        _ listen: String,
        _ arguments: [String],
        _ environment: [String: String]
    ) async throws -> Launched {
        let process = Process()
        process.executableURL = builtProgram("headroom")
        process.arguments = ["serve", "--listen", listen, "--log-level", "error"] + timeouts + arguments
        process.environment = environment.merging(["HEADROOM_DATABASE_URL": databaseURL]) { own, _ in own }
        guard let line = try await process.run(until: /ready listen=.*\n/) else {
            process.terminate()
            throw DidNotStart()
        }
        guard let match = line.firstMatch(of: /listen=(\S+) http=(\S+)/),
            let endpoint = HeadroomClient.Endpoint(String(match.1))
        else { throw DidNotStart() }
        let http = match.2 == "off" ? nil : HeadroomClient.Endpoint(String(match.2))
        return Launched(process: process, endpoint: endpoint, http: http)
    }
}

extension ServiceProcess {
    /// A proxy in front of the service, for clients of `proxy.endpoint`.
    public func proxy(_ faults: Proxy.Faults = Proxy.Faults(), seed: UInt64 = 0) async throws -> Proxy {
        try await Proxy.start(to: SocketAddress(ipAddress: endpoint.host, port: endpoint.port), faults, seed: seed)
    }
}

extension Proxy {
    public var endpoint: HeadroomClient.Endpoint { .init(host: "127.0.0.1", port: address.port ?? 0) }
}
