import CLibPQ
import Foundation

/// Brings up a libpq connection without ever waiting inside libpq.
///
/// PQconnectPoll tries the hosts of the connection string one after the other and checks `target_session_attrs`, but
/// it knows no time: at a host that takes the connection and then is silent (a stopped process, a full disk, a
/// firewall) it stays for ever, and a failover would wait with it. So each host has its share of the time, and one
/// that uses it up is taken out of the list for the rest of this attempt.
struct Connecting {
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

    /// Another connection like the one at hand, to the very same host.
    func again(like handle: OpaquePointer, timeout: Duration) -> Connecting {
        var parameters = parameters
        let current = Connecting.currentHost(handle)
        let same = parameters.hosts.filter { Connecting.isSame($0, current) }
        if !same.isEmpty { parameters.hosts = Array(same.prefix(1)) }
        return Connecting(parameters, timeout: timeout)
    }

    /// What libpq says when it connects, for a session that is reset.
    var sessionSettings: [(String, String)] {
        ["client_encoding", "application_name"].compactMap { name in parameters[name].map { (name, $0) } }
    }

    /// - Returns: a connection with status CONNECTION_OK, which the caller has to finish.
    mutating func run() throws(PostgresError) -> OpaquePointer {
        while true {
            let handle = try start()
            switch poll(handle) {
            case .connected:
                return handle
            case .failed:
                let message = PostgresError.text(PQerrorMessage(handle))
                PQfinish(handle)
                throw PostgresError(.connectFailed, explain(message), hint: Connecting.hint(for: message))
            case .silent(let host):
                silentHosts.append("\(host.host.isEmpty ? host.address : host.host), port \(host.port)")
                PQfinish(handle)
                var hosts = parameters.hosts
                guard let index = hosts.firstIndex(where: { Connecting.isSame($0, host) }), hosts.count > 1,
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
        return handle
    }

    private func poll(_ handle: OpaquePointer) -> Outcome {
        guard PQstatus(handle) != CONNECTION_BAD else { return .failed }
        var host = Connecting.currentHost(handle)
        var hostDeadline = min(.now + share, deadline)
        // Until PQconnectPoll has been called the first time, behave as if it had asked to write.
        var wanted = PGRES_POLLING_WRITING
        while true {
            switch wanted {
            case PGRES_POLLING_OK: return .connected
            case PGRES_POLLING_FAILED: return .failed
            default: break
            }
            let events: SocketWait.Events = wanted == PGRES_POLLING_READING ? .read : .write
            guard SocketWait.wait(PQsocket(handle), for: events, until: hostDeadline) else { return .silent(host) }
            wanted = PQconnectPoll(handle)
            let current = Connecting.currentHost(handle)
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

    /// PQhost gives the address where the list has no name, and PQport the default where the list has no port.
    private static func isSame(_ listed: ConnectionParameters.Host, _ current: ConnectionParameters.Host) -> Bool {
        let host = listed.host.isEmpty ? listed.address : listed.host
        return (host == current.host || (host.isEmpty && !current.host.isEmpty))
            && (listed.port == current.port || listed.port.isEmpty)
    }

    private func explain(_ message: String) -> String {
        silentHosts.isEmpty ? message : "\(message) (no answer from \(silentHosts.joined(separator: "; ")))"
    }

    /// A failed connection has no SQLSTATE in libpq's interface, and the server's messages may be translated; these
    /// are libpq's and the usual server's words for what a newcomer meets first.
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
            return "connect by a name that stands in the server's certificate; sslmode=verify-full compares it"
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
