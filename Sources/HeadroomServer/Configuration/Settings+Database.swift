import Logging
import Usage

/// The database, and how requests reach it.
extension Settings {
    public static let databaseURL = Setting<String?>(
        "database-url",
        "libpq connection string or URI",
        isSecret: true,
        "the PostgreSQL to use, 14 or later; DATABASE_URL is read too. Not set: a private PostgreSQL is started in data-dir. "
            + "May hold a password: prefer the environment to the flag, or a passfile"
    )
    public static let dataDirectory = Setting<String>(
        "data-dir",
        default: ".headroom",
        "path",
        "directory of the private PostgreSQL"
    )
    public static let logLevel = Setting<Logger.Level>(
        "log-level",
        default: .info,
        "least level that is written to standard error, nothing per request above debug; commands other than serve: warning"
    )

    public static let ofEveryCommand: [any SettingDefinition] = [databaseURL, dataDirectory, logLevel]

    static let unknownUsers = Setting<UnknownUsers>(
        "unknown-users",
        default: .trial,
        "what a user without a plan gets: the trial, which starts with the first counted message, the free plan's "
            + "allowance, or nothing"
    )
    static let allowsWhenUnavailable = Setting<Bool>(
        "when-unavailable",
        (false, "deny"),
        (true, "allow"),
        "what CONSUME and CHECK answer while the database is unavailable: -UNAVAILABLE, or +ALLOWED degraded=1, uncounted"
    )
    static let lanes = Setting<Int>(
        "lanes",
        default: 2,
        1...64,
        "database connections that execute batches, each with a thread"
    )
    static let batchMaximum = Setting<Int>(
        "batch-maximum",
        default: 512,
        1...4_096,
        unit: "requests",
        "requests in one batch"
    )
    static let queueMaximum = Setting<Int>(
        "queue-maximum",
        default: 65_536,
        64...1_048_576,
        unit: "requests",
        "requests that wait for the database in all; one more is answered -OVERLOADED"
    )
    static let queueWait = Setting<Duration>(
        "queue-wait-ms",
        default: 500,
        10...30_000,
        "a request that would wait longer than this for the database is answered -OVERLOADED at once; half of "
            + "request-timeout-ms at most"
    )
    static let requestTimeout = Setting<Duration>(
        "request-timeout-ms",
        default: 2_000,
        100...60_000,
        "a request is answered within this time, even if the database does not answer"
    )
    static let connectTimeout = Setting<Duration>(
        "connect-timeout-ms",
        default: 2_000,
        100...60_000,
        "how long one attempt to connect to the database may take"
    )
    static let reportTimeout = Setting<Duration>(
        "report-timeout-ms",
        default: 60_000,
        1_000...3_600_000,
        "REPORT and TOP, which scan the whole table in page ranges, are answered within this time"
    )
    static let changesPoll = Setting<Duration>(
        "changes-poll-ms",
        default: 100,
        10...60_000,
        "how often subscribed users are checked for changes"
    )
    public static let keysKeepDays = Setting<Int>(
        "keys-keep-days",
        default: 7,
        7...365,
        unit: "days",
        "how long keys are kept; older ones are deleted in the background"
    )
    static let billingSessions = Setting<Int>(
        "billing-sessions",
        default: 4,
        1...64,
        "database sessions that apply billing events at the same time; opened when needed, closed after 30 s without work"
    )

    static let ofDatabase: [any SettingDefinition] = [
        unknownUsers, allowsWhenUnavailable, lanes, batchMaximum, queueMaximum, queueWait, requestTimeout,
        connectTimeout,
        reportTimeout, changesPoll, keysKeepDays, billingSessions,
    ]
}
