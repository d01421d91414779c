import Foundation
import HeadroomClient

/// A usage as JSON, with the field names of the line protocol. `limit` and `remaining` are null where there is no
/// limit.
struct UsageObject: Encodable, Sendable {
    var status: UsageStatus
    /// That of the sentences, for the page's `lang` attributes; nil if it is unknown.
    let language: LanguageTag?
    /// The answers that messages with models would get, by the models' names.
    var models: [String: UsageObject] = [:]

    init(status: UsageStatus, language: LanguageTag?) {
        self.status = status
        self.language = language
    }

    private enum CodingKeys: String, CodingKey {
        case plan, state, tier, display, used, held, limit, remaining, resets, expires, renews, graceUntil, nextPlan
        case day, days, reason, previousPlan, label, stateLabel, accessible, price, currency, manage, steps, notice
        case banner, degraded, windowLimit, windowUsed, windowResets, lang
        case model, modelLimit, modelUsed, modelRemaining, modelResets, fallback, models
    }

    func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        // Headroom did not answer, so the rest of the status means nothing.
        if status.isDegraded { return try fields.encode(true, forKey: .degraded) }
        try fields.encode(status.plan, forKey: .plan)
        try fields.encode(status.state.rawValue, forKey: .state)
        try fields.encode(status.tier.rawValue, forKey: .tier)
        try fields.encode(status.display.rawValue, forKey: .display)
        try fields.encode(status.used, forKey: .used)
        try fields.encode(status.held, forKey: .held)
        try fields.encode(status.limit, forKey: .limit)
        try fields.encode(status.remaining, forKey: .remaining)
        try fields.encodeIfPresent(status.day, forKey: .day)
        try fields.encodeIfPresent(status.days, forKey: .days)
        try fields.encodeIfPresent(status.window?.limit, forKey: .windowLimit)
        try fields.encodeIfPresent(status.window?.used, forKey: .windowUsed)
        try fields.encodeIfPresent(status.model?.limit, forKey: .modelLimit)
        try fields.encodeIfPresent(status.model?.used, forKey: .modelUsed)
        try fields.encodeIfPresent(status.model?.remaining, forKey: .modelRemaining)
        if !models.isEmpty { try fields.encode(models, forKey: .models) }
        let texts: [(CodingKeys, String?)] = [
            (.resets, status.resets?.iso8601), (.expires, status.expires?.iso8601), (.renews, status.renews?.iso8601),
            (.graceUntil, status.graceUntil?.iso8601), (.nextPlan, status.nextPlan), (.reason, status.reason?.rawValue),
            (.previousPlan, status.previousPlan), (.label, status.label), (.stateLabel, status.stateLabel),
            (.accessible, status.accessible), (.price, status.price), (.currency, status.currency),
            (.manage, status.manage), (.steps, status.steps), (.notice, status.notice), (.banner, status.banner),
            (.windowResets, status.window?.resets?.iso8601), (.lang, language?.text),
            (.model, status.model?.name.text), (.modelResets, status.model?.resets?.iso8601),
            (.fallback, status.fallback?.text),
        ]
        for (key, text) in texts { try fields.encodeIfPresent(text, forKey: key) }
    }
}

extension Instant {
    fileprivate var iso8601: String {
        Date(timeIntervalSince1970: TimeInterval(secondsSince1970)).formatted(.iso8601)
    }
}
