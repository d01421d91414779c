import Foundation
import HeadroomClient
import PostgresTestSupport
import Synchronization

/// The built service as a process of its own, so that it can be killed as a crash would, and started again where it was.
final class ServiceProcess: Sendable {
    struct DidNotStart: Error {}

    let endpoint: HeadroomClient.Endpoint
    private let databaseURL: String
    private let arguments: [String]
    private let process: Mutex<Process>

    /// Starts a service on a free port.
    ///
    /// - Parameters:
    ///   - databaseURL: a fresh database's unless given.
    ///   - arguments: of `headroom serve`, beside those that every test needs.
    static func start(databaseURL: String? = nil, _ arguments: String...) async throws -> ServiceProcess {
        let url: String
        if let databaseURL { url = databaseURL } else { url = try await TestServer.freshDatabase() }
        let (process, endpoint) = try await launch(url, "127.0.0.1:0", arguments)
        return ServiceProcess(url, arguments, process, endpoint)
    }

    private init(_ url: String, _ arguments: [String], _ process: Process, _ endpoint: HeadroomClient.Endpoint) {
        databaseURL = url
        self.arguments = arguments
        self.process = Mutex(process)
        self.endpoint = endpoint
    }

    deinit {
        process.withLock { _ = kill($0.processIdentifier, SIGKILL) }
    }

    var conninfo: String { databaseURL }

    /// As the kernel does when memory runs out: nothing is tidied up.
    func kill9() async throws {
        let identifier = process.withLock { process in
            kill(process.processIdentifier, SIGKILL)
            return process.processIdentifier
        }
        try await waitUntil("the service is dead") {
            self.process.withLock { !$0.isRunning } || kill(identifier, 0) != 0
        }
    }

    /// Tells it to drain, and waits for its end.
    func terminate() async throws {
        process.withLock { _ = kill($0.processIdentifier, SIGTERM) }
        try await waitUntil("the service has ended") { self.process.withLock { !$0.isRunning } }
    }

    /// Stops it as a machine that hangs would, or lets it go on.
    func pause(_ isPaused: Bool) {
        process.withLock { _ = kill($0.processIdentifier, isPaused ? SIGSTOP : SIGCONT) }
    }

    /// Starts it again, on the same port.
    func restart() async throws {
        let (process, _) = try await ServiceProcess.launch(databaseURL, "\(endpoint)", arguments)
        self.process.withLock { $0 = process }
    }

    static let binary = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: ".build/debug/headroom")

    private static func launch(
        _ databaseURL: String,
        _ listen: String,
        _ arguments: [String]
    ) async throws -> (Process, HeadroomClient.Endpoint) {
        let process = Process()
        process.executableURL = binary
        process.arguments = ["serve", "--listen", listen, "--http", "off", "--log-level", "error"] + arguments
        process.environment = ["HEADROOM_DATABASE_URL": databaseURL]
        let output = Pipe()
        process.standardOutput = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        guard let endpoint = try await readyEndpoint(output.fileHandleForReading) else {
            process.terminate()
            throw DidNotStart()
        }
        return (process, endpoint)
    }

    /// What stands in the line `ready listen=HOST:PORT http=…`.
    private static func readyEndpoint(_ output: FileHandle) async throws -> HeadroomClient.Endpoint? {
        let (chunks, continuation) = AsyncStream.makeStream(of: Data.self)
        output.readabilityHandler = { handle in
            let chunk = handle.availableData
            if chunk.isEmpty { continuation.finish() } else { continuation.yield(chunk) }
        }
        defer { output.readabilityHandler = nil }
        var text = ""
        for await chunk in chunks {
            text += String(decoding: chunk, as: UTF8.self)
            guard let match = text.firstMatch(of: /ready listen=(\S+) .*\n/) else { continue }
            return HeadroomClient.Endpoint(String(match.1))
        }
        return nil
    }
}

extension HeadroomClient {
    /// A client that waits for as long as a machine may take that is busy with other tests.
    static func patient(_ service: ServiceProcess) -> HeadroomClient {
        var configuration = Configuration(endpoints: [service.endpoint])
        configuration.deadline = .seconds(30)
        configuration.attemptTimeout = .seconds(30)
        configuration.connectTimeout = .seconds(30)
        return HeadroomClient(configuration)
    }

    /// A client of one service or several, which is shut down when the body is done.
    @discardableResult
    static func with<Result>(
        _ services: ServiceProcess...,
        configure: (inout Configuration) -> Void = { _ in },
        _ body: (HeadroomClient) async throws -> Result
    ) async throws -> Result {
        var configuration = Configuration(endpoints: services.map(\.endpoint))
        configuration.deadline = .seconds(30)
        configuration.attemptTimeout = .seconds(5)
        configuration.connectTimeout = .seconds(10)
        configure(&configuration)
        let client = HeadroomClient(configuration)
        do {
            let result = try await body(client)
            await client.shutDown()
            return result
        } catch {
            await client.shutDown()
            throw error
        }
    }
}

extension UserID {
    static var random: UserID { UserID(high: .random(in: 0...(.max)), low: .random(in: 0...(.max))) }
}
