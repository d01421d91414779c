import Usage

/// How messages are counted, and how requests reach the database.
package struct CountingSettings: SettingGroup {
    package let unknownUsers = Setting<UnknownUsersPolicy>("unknown-users", default: "trial", .cases) {
        "what a user without a plan gets. trial: the trial, from the first counted message on; free: the plan free; "
            + "deny: nothing"
    }
    package let renewalLeeway = Setting("renewal-leeway", default: "1h", .time(daysMaximum: 3)) {
        "how long a subscription that renews keeps access after the end of the paid time, until the store's event "
            + "arrives. It counts in the period that has ended"
    }
    package let userNamespace = Setting("user-namespace", .namespace) {
        "the namespace for users without UUIDs: a text of 1 to 255 bytes without spaces and control characters then "
            + "stands for its UUID of version 5. Choose a random UUID once, and never change it"
    }
    package let manageURL = Setting("manage-url", .pageURL) {
        "where users change a subscription that does not come from the App Store; USAGE shows it as manage"
    }
    package let language = Setting("language", default: "en", .language) {
        "the language of sentences if a request names none, or only languages without words in headroom.words; words "
            + "that are missing in it are in en"
    }
    package let allowsWhenUnavailable =
        Setting("when-unavailable", default: "deny", .words([("deny", false), ("allow", true)])) {
            "the answer to messages while the database is away. deny: -UNAVAILABLE; allow: ALLOWED or HELD, uncounted, "
                + "with degraded=1"
        }
    package let lanes = Setting("lanes", default: 2, .number(1...64)) {
        "database connections that execute batches, each with its own thread; in a distributed database, for each "
            + "worker"
    }
    package let batchMaximum = Setting("batch-maximum", default: 512, .number(1...4_096, "requests")) {
        "maximum requests in one batch"
    }
    package let queueMaximum = Setting("queue-maximum", default: 65_536, .number(64...1_048_576, "requests")) {
        "maximum requests that wait for the database; one more is answered -OVERLOADED"
    }
    package let queueWait = Setting("queue-wait-ms", default: 500, .milliseconds(10...30_000)) {
        "a request that would wait longer for the database is answered -OVERLOADED at once. Above half of "
            + "request-timeout-ms, that half applies"
    }
    package let requestTimeout = Setting("request-timeout-ms", default: 2_000, .milliseconds(100...60_000)) {
        "every request is answered within this time, if need be with an error"
    }
    package let connectTimeout = Setting("connect-timeout-ms", default: 2_000, .milliseconds(100...60_000)) {
        "maximum time of an attempt to connect to the database"
    }
    package let primaryLease = Setting("primary-lease-ms", default: 2_000, .milliseconds(100...60_000)) {
        "where commits wait for a synchronous standby: CHECK, USAGE and refusals are answered by a server that a "
            + "commit has shown to be the primary within this time; otherwise they wait for a commit"
    }
    package let reportTimeout = Setting("report-timeout-ms", default: 60_000, .milliseconds(1_000...3_600_000)) {
        "REPORT and TOP are answered within this time, if need be with an error"
    }
    package let changesPoll = Setting("changes-poll-ms", default: 100, .milliseconds(10...60_000)) {
        "minimum time between two polls for changes of subscribed users"
    }
    package let keysKeepDays = Setting("keys-keep-days", default: 7, .number(7...365, "days")) {
        "how long the keys of messages are stored"
    }
    package let billingSessions = Setting("billing-sessions", default: 4, .number(1...64)) {
        "maximum database connections that apply billing events; they are closed after 30 s without work"
    }
}
