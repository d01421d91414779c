import Logging
import Usage

/// The database, and how requests reach it.
extension Settings {
    public static let databaseURL = Setting<String?>(
        "database-url",
        "libpq connection string or URI",
        isSecret: true,
        "the database, PostgreSQL 14 or later. If neither this nor DATABASE_URL is set, a private PostgreSQL is "
            + "started in data-dir. Set a password by the variable or a passfile, not by the flag"
    )
    public static let dataDirectory = Setting<String>(
        "data-dir",
        default: ".headroom",
        "path",
        "the directory of the private PostgreSQL's data"
    )
    public static let logLevel = Setting<Logger.Level>(
        "log-level",
        default: .info,
        "the lowest level of log messages, on standard error; warning by default for commands other than serve. Above "
            + "debug, nothing is logged for each request"
    )

    public static let ofEveryCommand: [any SettingDefinition] = [databaseURL, dataDirectory, logLevel]

    static let unknownUsers = Setting<UnknownUsersPolicy>(
        "unknown-users",
        default: .trial,
        "what a user without a plan gets. trial: the trial, from the first counted message on; free: the plan free; "
            + "deny: nothing"
    )
    static let renewalLeeway = Setting<Duration>(
        "renewal-leeway",
        default: "1h",
        daysMaximum: 3,
        "how long a subscription that renews keeps access after the end of the paid time, until the store's event "
            + "arrives. It counts in the period that has ended"
    )
    static let userNamespace = Setting<UserNamespace?>(
        "user-namespace",
        "the namespace for users without UUIDs: a text of 1 to 255 bytes without spaces and control characters then "
            + "stands for its UUID of version 5. Choose a random UUID once, and never change it"
    )
    static let manageURL = Setting<String?>(
        url: "manage-url",
        "where users change a subscription that does not come from the App Store; USAGE shows it as manage"
    )
    static let language = Setting<LanguageTag>(
        "language",
        default: .english,
        "the language of sentences if a request names none, or only languages without words in headroom.words; words "
            + "that are missing in it are in en"
    )
    static let allowsWhenUnavailable = Setting<Bool>(
        "when-unavailable",
        (false, "deny"),
        (true, "allow"),
        "the answer to messages while the database is away. deny: -UNAVAILABLE; allow: ALLOWED or HELD, uncounted, "
            + "with degraded=1"
    )
    static let lanes = Setting<Int>(
        "lanes",
        default: 2,
        1...64,
        "database connections that execute batches, each with its own thread; in a distributed database, for each "
            + "worker"
    )
    static let batchMaximum = Setting<Int>(
        "batch-maximum",
        default: 512,
        1...4_096,
        unit: "requests",
        "maximum requests in one batch"
    )
    static let queueMaximum = Setting<Int>(
        "queue-maximum",
        default: 65_536,
        64...1_048_576,
        unit: "requests",
        "maximum requests that wait for the database; one more is answered -OVERLOADED"
    )
    static let queueWait = Setting<Duration>(
        "queue-wait-ms",
        default: 500,
        10...30_000,
        "a request that would wait longer for the database is answered -OVERLOADED at once. Above half of "
            + "request-timeout-ms, that half applies"
    )
    static let requestTimeout = Setting<Duration>(
        "request-timeout-ms",
        default: 2_000,
        100...60_000,
        "every request is answered within this time, if need be with an error"
    )
    static let connectTimeout = Setting<Duration>(
        "connect-timeout-ms",
        default: 2_000,
        100...60_000,
        "maximum time of an attempt to connect to the database"
    )
    static let primaryLease = Setting<Duration>(
        "primary-lease-ms",
        default: 2_000,
        100...60_000,
        "where commits wait for a synchronous standby: CHECK, USAGE and refusals are answered by a server that a "
            + "commit has shown to be the primary within this time; otherwise they wait for a commit"
    )
    static let reportTimeout = Setting<Duration>(
        "report-timeout-ms",
        default: 60_000,
        1_000...3_600_000,
        "REPORT and TOP are answered within this time, if need be with an error"
    )
    static let changesPoll = Setting<Duration>(
        "changes-poll-ms",
        default: 100,
        10...60_000,
        "minimum time between two polls for changes of subscribed users"
    )
    public static let keysKeepDays = Setting<Int>(
        "keys-keep-days",
        default: 7,
        7...365,
        unit: "days",
        "how long the keys of messages are stored"
    )
    static let billingSessions = Setting<Int>(
        "billing-sessions",
        default: 4,
        1...64,
        "maximum database connections that apply billing events; they are closed after 30 s without work"
    )

    public static let ofDatabase: [any SettingDefinition] = [
        unknownUsers, renewalLeeway, userNamespace, manageURL, language, allowsWhenUnavailable, lanes, batchMaximum,
        queueMaximum,
        queueWait, requestTimeout, connectTimeout, primaryLease, reportTimeout, changesPoll, keysKeepDays,
        billingSessions,
    ]
}
