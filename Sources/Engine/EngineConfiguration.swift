import Postgres
import Usage

/// The engine's part of the settings, which ServiceCore documents.
public struct EngineConfiguration: Sendable {
    public var database: DatabaseTopology
    public var unknownUsersPolicy: UnknownUsersPolicy
    /// How long a subscription that renews keeps access after the end of the paid time.
    public var renewalLeeway: Duration
    /// Where users change a subscription that does not come from the App Store; nil if it is not set.
    public var manageURL: String?
    /// The language of sentences in answers to requests that name none.
    public var language: LanguageTag
    /// The number of database connections that execute batches, each with a thread.
    public var lanes: Int
    /// The most requests in one batch.
    public var batchMaximum: Int
    /// The most requests that may wait in all. One more is refused as overload.
    public var queueCapacity: Int
    /// The longest wait for a lane; a request that would have to wait longer is refused as overload. It is at most half
    /// of `requestTimeout`.
    public var queueWaitMaximum: Duration
    /// How long a request may take before it is answered whatever the database does.
    public var requestTimeout: Duration
    /// How long one attempt to connect to the database may take.
    public var connectTimeout: Duration
    /// The time after a commit for which the server is taken for the primary, if commits wait for a standby. Answers
    /// without a commit depend on it.
    public var primaryLease: Duration
    /// How long REPORT and TOP, which read the whole table, may take.
    public var reportTimeout: Duration
    /// How often subscribed users are checked for changes.
    public var changesPoll: Duration
    /// Whether lanes remember which users have crossed into a tier.
    public var sendsNotifications: Bool

    public init(
        database: DatabaseTopology,
        unknownUsersPolicy: UnknownUsersPolicy = .trial,
        renewalLeeway: Duration = .zero,
        manageURL: String? = nil,
        language: LanguageTag = .english,
        lanes: Int = 2,
        batchMaximum: Int = 512,
        queueCapacity: Int = 65_536,
        queueWaitMaximum: Duration = .milliseconds(500),
        requestTimeout: Duration = .seconds(2),
        connectTimeout: Duration = .seconds(2),
        primaryLease: Duration = .seconds(2),
        reportTimeout: Duration = .seconds(60),
        changesPoll: Duration = .milliseconds(100),
        sendsNotifications: Bool = false
    ) {
        self.database = database
        self.unknownUsersPolicy = unknownUsersPolicy
        self.renewalLeeway = renewalLeeway
        self.manageURL = manageURL
        self.language = language
        self.lanes = lanes
        self.batchMaximum = batchMaximum
        self.queueCapacity = queueCapacity
        self.queueWaitMaximum = min(queueWaitMaximum, requestTimeout / 2)
        self.requestTimeout = requestTimeout
        self.connectTimeout = connectTimeout
        self.primaryLease = primaryLease
        self.reportTimeout = reportTimeout
        self.changesPoll = changesPoll
        self.sendsNotifications = sendsNotifications
    }
}

extension EngineConfiguration {
    /// The options of a session with a lane's settings: index scans for each user, and limits of time.
    func sessionOptions(_ name: String, readOnly: Bool = false) -> ConnectionOptions {
        var options = ConnectionOptions.service(
            name,
            database,
            connectTimeout: connectTimeout,
            settings: LaneSettings.all(requestTimeout: requestTimeout) + answerSettings
                + [("headroom.manage_url", manageURL ?? "")]
                + (readOnly ? [("default_transaction_read_only", "on")] : [])
        )
        options.settingsWithCitus = LaneSettings.withCitus
        return options
    }

    /// Options that make the planner read a page range in order and hash the few plans, also without statistics.
    var readerOptions: ConnectionOptions {
        .service(
            "reader",
            database,
            connectTimeout: connectTimeout,
            settings: [
                ("enable_seqscan", "off"),
                ("enable_nestloop", "off"),
                ("enable_mergejoin", "off"),
                ("enable_sort", "off"),
                // The plan depends on the number of pages in the range.
                ("plan_cache_mode", "force_custom_plan"),
                ("max_parallel_workers_per_gather", "0"),
                ("jit", "off"),
                ("default_transaction_read_only", "on"),
            ] + answerSettings
        )
    }

    /// The settings with which SQL functions derive answers.
    var answerSettings: [(String, String)] {
        [
            ("headroom.unknown_users", unknownUsersPolicy.rawValue),
            ("headroom.renewal_leeway", "\(renewalLeeway.components.seconds)s"),
        ]
    }
}

/// Keeps passwords out of the printed or dumped configuration, also as part of something else.
extension EngineConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "engine at \(database), \(lanes) lanes" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["database": "\(database)"]) }
}
