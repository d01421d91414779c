import LineProtocol
import Usage

extension Command {
    /// The request as we would write it: all that can be said is said, in one order. Without `default`, so that a verb
    /// cannot be forgotten here.
    var tokens: [String] {
        [verb.rawValue] + arguments
    }

    private var arguments: [String] {
        switch self {
        case .consume(let user, let messages, let key): [user.description, String(messages)] + option("key", key?.text)
        case .reserve(let user, let messages, let key, let ttlSeconds):
            [user.description, String(messages), "key=\(key.text)", "ttl=\(ttlSeconds)"]
        case .commit(let user, let key), .release(let user, let key): [user.description, "key=\(key.text)"]
        case .check(let user, let messages): [user.description, String(messages)]
        case .usage(let user, let period), .resetUsage(let user, let period):
            [user.description] + (period.map { [$0.label] } ?? [])
        case .history(let user, let months): [user.description, String(months)]
        case .report(let period): period.map { [$0.label] } ?? []
        case .top(let period, let count): (period.map { [$0.label] } ?? []) + [String(count)]
        case .subscribe(let channels): channels.map(\.name)
        case .unsubscribe(let channels): channels?.map(\.name) ?? []
        case .setPlan(let change): change.arguments
        case .grant(let user, let messages, let key, let reason):
            [user.description, String(messages), "key=\(key.text)"] + option("reason", reason)
        case .forget(let user): [user.description]
        case .ping(let text): text.map { [$0] } ?? []
        case .echo(let text): [text]
        case .help(let verb): verb.map { [$0.rawValue] } ?? []
        case .authenticate(let credentials): (credentials.name.map { [$0] } ?? []) + [credentials.token.text]
        case .hello(let version, let credentials):
            [String(version)] + (credentials.map { ["AUTH", $0.name ?? "default", $0.token.text] } ?? [])
        case .select: ["0"]
        case .info, .quit, .client, .command: []
        }
    }
}

extension PlanChange {
    fileprivate var arguments: [String] {
        [user.description, plan] + option("state", state?.rawValue) + option("started", startedAt?.exactText)
            + option("expires", expiresAt?.exactText) + option("grace_until", graceUntil?.exactText)
            + option("anchor", anchorDay.map(String.init))
    }
}

extension Instant {
    /// To the microsecond, which `text` is not. The clock shown may be a day away: an offset takes an instant a little
    /// before 1970 or after 9999, which has no other spelling.
    fileprivate var exactText: String {
        let year = date.year
        let offsetHours: Int64 = year < 1970 ? 23 : year > 9999 ? -23 : 0
        let minutes: Int64 = year < 1970 ? 59 : year > 9999 ? -59 : 0
        let shown = advanced(bySeconds: offsetHours * 3_600 + minutes * 60)
        let microseconds = String(shown.microsecondsSince1970 - shown.secondsSince1970 * 1_000_000)
        let fraction = String(repeating: "0", count: 6 - microseconds.count) + microseconds
        return shown.text.dropLast() + "." + fraction + (offsetHours == 0 ? "Z" : offsetHours > 0 ? "+23:59" : "-23:59")
    }
}

private func option(_ name: String, _ value: String?) -> [String] {
    value.map { ["\(name)=\($0)"] } ?? []
}
