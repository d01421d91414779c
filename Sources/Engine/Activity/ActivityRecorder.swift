import Logging
import Postgres
import Synchronization

/// Adds what the lanes have counted to the day's row in `headroom.daily_activity`, every few seconds and away from them.
///
/// A statistic, so it costs no message anything: what was not written when the process dies is lost, and so is what was
/// under way when a connection breaks, because to send it again might count it twice.
public final class ActivityRecorder: Sendable {
    /// How often it is written, and so how much of it a crash can lose.
    public static let interval = Duration.seconds(10)

    private let options: ConnectionOptions
    private let timeout: Duration
    private let total: @Sendable () -> Activity
    private let written = Mutex(Activity())
    private let log: RepeatedWorkLog

    /// - Parameters:
    ///   - timeout: of connecting, and of the statement.
    ///   - total: what was counted since the start; asked on any thread.
    public init(
        databaseURL: String,
        timeout: Duration = .seconds(1),
        logger: Logger,
        total: @escaping @Sendable () -> Activity
    ) {
        options = .service(
            "housekeeper",
            databaseURL,
            connectTimeout: timeout,
            // Nobody waits for this to be durable, so no flush of the log is made for it.
            settings: [("synchronous_commit", "off")]
        )
        self.timeout = timeout
        self.total = total
        log = RepeatedWorkLog("writing the day's activity", logger)
    }

    /// Adds what was counted since the last time, by one statement. Not twice at once.
    ///
    /// - Throws: when the database cannot be reached or refuses; then the next time adds it.
    public func record() async throws {
        let total = total()
        let difference = written.withLock { total - $0 }
        guard difference != Activity() else { return }
        let (options, timeout) = (options, timeout)
        do {
            try await onThread(named: "headroom.activity") {
                let connection = try Connection.connect(options)
                defer { connection.close() }
                var parameters = Parameters()
                parameters.append(int64: Int64(clamping: difference.messages))
                parameters.append(int64: Int64(clamping: difference.blocked))
                _ = try connection.query(EmbeddedSQL.addDailyActivity, parameters, deadline: .now + timeout)
            }
            written.withLock { $0 = total }
        } catch {
            if ActivityRecorder.mayHaveBeenWritten(error) { written.withLock { $0 = total } }
            throw error
        }
    }

    private static func mayHaveBeenWritten(_ error: any Error) -> Bool {
        switch (error as? PostgresError)?.kind {
        case .connectionLost, .timedOut: true
        case .connectFailed, .server, .misuse, nil: false
        }
    }

    /// Records at every interval until cancelled.
    public func run(every interval: Duration = ActivityRecorder.interval) async {
        while true {
            do {
                try await Task.sleep(for: interval)
            } catch {
                return
            }
            await recordOrLog()
        }
    }

    /// At the end, when nothing is counted any more.
    public func recordOrLog() async {
        do {
            try await record()
            log.succeeded()
        } catch {
            log.failed(error)
        }
    }
}
