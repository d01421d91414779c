import Postgres
import Usage

/// What an operator can set about the engine. ServiceCore's settings document each.
public struct EngineConfiguration: Sendable {
    public var database: DatabaseTopology
    public var unknownUsersPolicy: UnknownUsersPolicy
    /// How long a subscription that renews keeps access after the end of the paid time.
    public var renewalLeeway: Duration
    /// Where users change a subscription that does not come from the App Store; nil: not known.
    public var manageURL: String?
    /// Of sentences in answers to requests that name none.
    public var language: LanguageTag
    /// Database connections that execute batches, each with a thread.
    public var lanes: Int
    /// Requests in one batch at most.
    public var batchMaximum: Int
    /// Requests that may wait in all; one more is refused as overload.
    public var queueCapacity: Int
    /// A request that would have to wait for a lane for longer is refused as overload; half of `requestTimeout` at
    /// most.
    public var queueWaitMaximum: Duration
    /// How long a request may take before it is answered whatever the database does.
    public var requestTimeout: Duration
    /// How long one attempt to connect to the database may take.
    public var connectTimeout: Duration
    /// Where commits wait for a standby: how long after one the server is taken for the primary, for answers without a
    /// commit.
    public var primaryLease: Duration
    /// How long REPORT and TOP may take, which read the whole table.
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
    /// Of a session with a lane's settings: index scans for each user, and limits of time.
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

    /// Makes the planner read a page range in order and hash the few plans, also where the table has no statistics yet.
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

    /// What SQL functions derive answers with.
    var answerSettings: [(String, String)] {
        [
            ("headroom.unknown_users", unknownUsersPolicy.rawValue),
            ("headroom.renewal_leeway", "\(renewalLeeway.components.seconds)s"),
        ]
    }
}

/// Printing or dumping the configuration, also as part of something else, shows no password.
extension EngineConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "engine at \(database), \(lanes) lanes" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["database": "\(database)"]) }
}
