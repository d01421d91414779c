import Logging
import Postgres
import Synchronization

/// Adds the lanes' counts to the day's row in `headroom.daily_activity` every few seconds, apart from the lanes.
///
/// The statistic must cost no message anything, so it may lose counts: those that are not written when the process
/// dies, and those of a statement whose connection breaks, because repeating it could count them twice.
public final class ActivityRecorder: Sendable {
    /// The time between writes. A crash loses the counts of at most this time.
    public static let interval = Duration.seconds(10)

    private let options: ConnectionOptions
    private let timeout: Duration
    private let total: @Sendable () -> Activity
    private let written = Mutex(Activity())
    private let log: RepeatedWorkLog

    /// - Parameters:
    ///   - timeout: the time for connecting, and for the statement.
    ///   - total: returns the counts since the start; called on any thread.
    public init(
        database: DatabaseTopology,
        timeout: Duration = .seconds(1),
        logger: Logger,
        total: @escaping @Sendable () -> Activity
    ) {
        options = .service(
            "housekeeper",
            database,
            connectTimeout: timeout,
            // A lost row is tolerable, so the commit does not wait for a flush.
            settings: [("synchronous_commit", "off")]
        )
        self.timeout = timeout
        self.total = total
        log = RepeatedWorkLog("writing the day's activity", logger)
    }

    /// Adds the counts since the last call, by one statement. Calls must not overlap.
    ///
    /// - Throws: if the database cannot be reached, or refuses. The next call adds the counts then.
    public func record() async throws {
        let total = total()
        let difference = written.withLock { total - $0 }
        guard difference != Activity() else { return }
        let (options, timeout) = (options, timeout)
        do {
            try await onThread(named: "headroom.activity") {
                var parameters = Parameters()
                parameters.append(int64: Int64(clamping: difference.messages))
                parameters.append(int64: Int64(clamping: difference.blocked))
                _ = try options.query(EmbeddedSQL.addDailyActivity, parameters, timeout: timeout)
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

    /// Records once more at the shutdown, when nothing is counted any more. It logs a failure.
    public func recordOrLog() async {
        do {
            try await record()
            log.succeeded()
        } catch {
            log.failed(error)
        }
    }
}
