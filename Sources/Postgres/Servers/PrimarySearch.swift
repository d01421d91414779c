import CLibPQ
import Foundation

/// Asks all servers of a database at the same time, and connects to the primary of the newest timeline.
///
/// libpq tries the hosts of a connection string one after the other, and takes the first that answers, or with
/// `target_session_attrs=read-write` the first that accepts writes. That may be a primary that was superseded while it
/// was away; and a server that is silent (a stopped process, a full disk, a firewall) would delay a failover.
struct PrimarySearch {
    /// The connection that was opened.
    struct Found {
        /// The caller must end it with PQfinish.
        var handle: OpaquePointer
        var state: ServerState
        /// The parameters of its server alone.
        var parameters: ConnectionParameters
    }

    private let database: DatabaseTopology
    private let servers: [ConnectionParameters]
    private let requiresPrimary: Bool

    init(_ options: ConnectionOptions) throws(PostgresError) {
        database = options.database
        var parameters = try options.database.parameters.get()
        parameters.setDefaults(options)
        let attributes = parameters["target_session_attrs"] ?? "any"
        guard ["any", "read-write", "primary"].contains(attributes) else {
            throw PostgresError(
                .connectFailed,
                "target_session_attrs=\(attributes) asks for a server that takes no writes",
                hint: "leave it out: Headroom connects to the primary by itself"
            )
        }
        parameters["target_session_attrs"] = nil
        servers = parameters.servers
        requiresPrimary = servers.count > 1 || attributes != "any"
    }

    /// How often connected standbys are asked again while there is no primary. During a failover, it is the delay
    /// between the promotion and the first message.
    private static let interval = Duration.milliseconds(100)

    /// - Throws: `.connectFailed`, which says what is wrong with each server.
    func run(until deadline: ContinuousClock.Instant) throws(PostgresError) -> Found {
        var machine = PrimarySearchStateMachine(
            servers: servers.count,
            acceptsStandby: !requiresPrimary,
            known: database.timelines
        )
        var failures: [PostgresError?] = Array(repeating: nil, count: servers.count)
        var attempts: [ConnectionAttempt?] = []
        for (index, server) in servers.enumerated() {
            do throws(PostgresError) {
                attempts.append(try ConnectionAttempt(server))
            } catch {
                attempts.append(nil)
                failures[index] = error
                machine.failed(index)
            }
        }
        var nextQuestion = ContinuousClock.now + Self.interval
        while true {
            let pause: ContinuousClock.Instant
            switch machine.action(at: .now) {
            case .take(let index):
                guard case .state(let state) = machine.answers[index], let handle = attempts[index]?.take() else {
                    throw failure(machine, failures)
                }
                return Found(handle: handle, state: state, parameters: servers[index])
            case .fail: throw failure(machine, failures)
            case .wait(let until): pause = min(until ?? deadline, deadline, nextQuestion)
            }
            let waiting = attempts.indices.filter { attempts[$0]?.isWaiting ?? false }
            let ready = ConnectionAttempt.wait(for: waiting.compactMap { attempts[$0] }, until: pause)
            for (index, isReady) in zip(waiting, ready) where isReady {
                switch attempts[index]?.advance() {
                case nil, .waiting: break
                case .answered(let state):
                    if let timeline = state.timeline { database.note(timeline) }
                    machine.answered(index, state, at: .now)
                case .failed(let error):
                    failures[index] = error
                    machine.failed(index)
                }
            }
            let now = ContinuousClock.now
            if now >= deadline {
                // A server that is silent counts as one that cannot be reached.
                for index in waiting where machine.answers[index] == .none { machine.failed(index) }
                guard case .take = machine.action(at: now + PrimarySearchStateMachine.grace) else {
                    throw failure(machine, failures)
                }
            }
            if now >= nextQuestion {
                for index in machine.standbys where attempts[index]?.isWaiting == false {
                    if attempts[index]?.ask() == false { machine.failed(index) }
                }
                nextQuestion = now + Self.interval
            }
        }
    }

    // MARK: Failures

    private func failure(_ machine: PrimarySearchStateMachine, _ failures: [PostgresError?]) -> PostgresError {
        let problems = servers.indices.map { problem($0, machine, failures[$0]) }
        guard servers.count > 1 else { return problems[0] }
        let texts = zip(servers, problems).map { server, problem in
            // libpq's advice stands in further lines, which are left out.
            let text = problem.message.prefix { $0 != "\n" }
            return text.contains(server.serverName) ? String(text) : "\(server.serverName): \(text)"
        }
        return PostgresError(
            .connectFailed,
            "no server takes writes: \(texts.joined(separator: "; "))",
            hint: problems.lazy.compactMap(\.hint).first,
            refusal: problems.lazy.compactMap(\.refusal).first
        )
    }

    private func problem(
        _ index: Int,
        _ machine: PrimarySearchStateMachine,
        _ failure: PostgresError?
    ) -> PostgresError {
        if let failure { return failure }
        guard case .state(let state) = machine.answers[index] else {
            return .noAnswer
        }
        if let timeline = state.timeline, let successor = machine.newest.successor(of: timeline) {
            return .superseded(timeline, by: successor)
        }
        return PostgresError(
            .connectFailed,
            "the server is a standby",
            hint: "connect to the primary; a connection string may name all servers, and the primary is found"
        )
    }
}

extension PostgresError {
    static let noAnswer = PostgresError(
        .connectFailed,
        "the database did not answer in time",
        hint: "check that the server runs and that no firewall drops the connection"
    )

    package static func superseded(_ timeline: Timeline, by newest: Timeline) -> PostgresError {
        PostgresError(
            .connectFailed,
            "the server was superseded: it is on timeline \(timeline.number), and timeline \(newest.number) was seen",
            hint: "stop it, and make it a standby of its successor (pg_rewind, or a new base backup)"
        )
    }
}
