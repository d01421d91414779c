import CLibPQ
import Foundation

/// Opens a libpq connection without blocking inside libpq.
///
/// PQconnectPoll tries the hosts of the connection string in turn and checks `target_session_attrs`, but has no
/// timeout: it waits for ever for a host that accepts the connection and then is silent (a stopped process, a full
/// disk, a firewall), which would block a failover. So each host has a share of the time, and a host that exceeds it is
/// removed for the rest of this attempt.
struct ConnectionAttempt {
    private let deadline: ContinuousClock.Instant
    private let share: Duration
    private var parameters: ConnectionParameters
    private var silentHosts: [String] = []

    init(_ options: ConnectionOptions) throws(PostgresError) {
        var parameters = try ConnectionParameters(parsing: options.conninfo)
        parameters.setDefaults(options)
        self.init(parameters, timeout: options.connectTimeout)
    }

    private init(_ parameters: ConnectionParameters, timeout: Duration) {
        self.parameters = parameters
        deadline = .now + timeout
        share = timeout / max(parameters.hosts.count, 1)
    }

    /// An attempt to open another connection to the host of `handle`.
    func again(like handle: OpaquePointer, timeout: Duration) -> ConnectionAttempt {
        var parameters = parameters
        let current = ConnectionAttempt.currentHost(handle)
        let same = parameters.hosts.filter { ConnectionAttempt.isSame($0, current) }
        if !same.isEmpty { parameters.hosts = Array(same.prefix(1)) }
        return ConnectionAttempt(parameters, timeout: timeout)
    }

    /// The settings that libpq sends when it connects; a reset session needs them again.
    var sessionSettings: [(String, String)] {
        ["client_encoding", "application_name"].compactMap { name in parameters[name].map { (name, $0) } }
    }

    /// - Returns: a connection with status CONNECTION_OK; the caller must call PQfinish.
    mutating func run() throws(PostgresError) -> OpaquePointer {
        while true {
            let handle = try start()
            switch poll(handle) {
            case .connected:
                _ = PQsetErrorVerbosity(handle, PQERRORS_DEFAULT)
                return handle
            case .failed:
                let failure = ConnectFailureMessage(PostgresError.text(PQerrorMessage(handle)))
                PQfinish(handle)
                throw PostgresError(
                    .connectFailed,
                    explain(failure.text),
                    hint: ConnectionAttempt.hint(for: failure.text),
                    refusal: failure.refusal
                )
            case .silent(let host):
                silentHosts.append("\(host.host.isEmpty ? host.address : host.host), port \(host.port)")
                PQfinish(handle)
                var hosts = parameters.hosts
                guard let index = hosts.firstIndex(where: { ConnectionAttempt.isSame($0, host) }), hosts.count > 1,
                    ContinuousClock.now < deadline
                else {
                    throw PostgresError(
                        .connectFailed,
                        explain("the database did not answer in time"),
                        hint: "check that the server runs and that no firewall drops the connection"
                    )
                }
                hosts.remove(at: index)
                parameters.hosts = hosts
            }
        }
    }

    private enum Outcome {
        case connected
        case failed
        case silent(ConnectionParameters.Host)
    }

    private func start() throws(PostgresError) -> OpaquePointer {
        let keywords = parameters.values.map { strdup($0.keyword) }
        let values = parameters.values.map { strdup($0.value) }
        defer {
            for copy in keywords + values { free(copy) }
        }
        let handle = (keywords.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer { keywords in
            (values.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer { values in
                PQconnectStartParams(keywords.baseAddress, values.baseAddress, 0)
            }
        }
        guard let handle else { throw PostgresError(.connectFailed, "out of memory") }
        // With the SQLSTATE of a server's error, which libpq reports in no other way.
        _ = PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
        return handle
    }

    private func poll(_ handle: OpaquePointer) -> Outcome {
        guard PQstatus(handle) != CONNECTION_BAD else { return .failed }
        var host = ConnectionAttempt.currentHost(handle)
        var hostDeadline = min(.now + share, deadline)
        // libpq's manual: before the first call of PQconnectPoll, act as if it had returned PGRES_POLLING_WRITING.
        var status = PGRES_POLLING_WRITING
        while true {
            switch status {
            case PGRES_POLLING_OK: return .connected
            case PGRES_POLLING_FAILED: return .failed
            default: break
            }
            let events: SocketWait.Events = status == PGRES_POLLING_READING ? .read : .write
            guard SocketWait.wait(PQsocket(handle), for: events, until: hostDeadline) else { return .silent(host) }
            status = PQconnectPoll(handle)
            let current = ConnectionAttempt.currentHost(handle)
            if current != host {
                host = current
                hostDeadline = min(.now + share, deadline)
            }
        }
    }

    private static func currentHost(_ handle: OpaquePointer) -> ConnectionParameters.Host {
        ConnectionParameters.Host(
            host: PQhost(handle).map { String(cString: $0) } ?? "",
            address: PQhostaddr(handle).map { String(cString: $0) } ?? "",
            port: PQport(handle).map { String(cString: $0) } ?? ""
        )
    }

    /// PQhost returns the address if the list has no name, and PQport the default if the list has no port.
    private static func isSame(_ listed: ConnectionParameters.Host, _ current: ConnectionParameters.Host) -> Bool {
        let host = listed.host.isEmpty ? listed.address : listed.host
        return (host == current.host || (host.isEmpty && !current.host.isEmpty))
            && (listed.port == current.port || listed.port.isEmpty)
    }

    private func explain(_ message: String) -> String {
        silentHosts.isEmpty ? message : "\(message) (no answer from \(silentHosts.joined(separator: "; ")))"
    }

    /// The server's messages may be translated. These are the English texts of the most common errors.
    private static func hint(for message: String) -> String? {
        if message.contains("Connection refused") || message.contains("No such file or directory") {
            return "is the server running, and does the connection string name its host and port?"
        }
        if message.contains("password authentication failed") || message.contains("no password supplied") {
            return "check user and password of the connection string, or PGPASSFILE"
        }
        if message.contains("certificate verify failed") {
            return "the server's certificate is not signed by a CA of sslrootcert, or is not valid now"
        }
        if message.contains("does not match host name") {
            return "connect by a name in the server's certificate; sslmode=verify-full compares it"
        }
        if message.contains("root certificate file") {
            return "sslrootcert names the file with the CA of the server's certificate"
        }
        if message.contains("server does not support SSL") {
            return "turn ssl on in PostgreSQL, or correct sslmode"
        }
        if message.contains("does not exist") {
            return "create it (createdb, createuser), or correct the connection string"
        }
        return nil
    }
}
