import Usage

/// The results of a batch on the slow path as text, for the lane's receipt: if the reply to the commit is lost, the
/// batch is answered from it.
enum ReceiptAnswers {
    // No name of a plan or a period contains these characters.
    private static let field: Character = "\u{1F}"
    private static let request: Character = "\u{1E}"
    private static let fieldsOfAnswer = 28
    private static let failures: [String: EngineError] = [
        "conflict": .keyConflict, "released": .keyReleased, "expired": .holdExpired, "unknown": .noSuchKey,
        "too large": .commitTooLarge,
    ]

    static func text(_ results: [SlowPathResult]) -> String {
        var text = ""
        text.reserveCapacity(results.count * 128)
        for result in results {
            if !text.isEmpty { text.append(request) }
            var isFirst = true
            for value in fields(result) {
                if !isFirst { text.append(field) }
                isFirst = false
                text += value
            }
        }
        return text
    }

    private static func fields(_ result: SlowPathResult) -> [String] {
        guard let answer = result.answer else {
            return [failures.first { result.outcome == .failure($0.value) }?.key ?? ""]
        }
        let snapshot = answer.snapshot
        func text(_ value: (some CustomStringConvertible)?) -> String { value.map { "\($0)" } ?? "" }
        func text(_ instant: Instant?) -> String { text(instant?.microsecondsSince1970) }
        let status =
            switch answer.status {
            case .allowed: "allowed"
            case .held: "held"
            case .ok: "ok"
            case .blocked: "blocked"
            }
        return [
            status, text(answer.reason?.rawValue), text(result.messagesCounted), text(answer.crossed?.rawValue),
            text(answer.retryAfterSeconds), text(answer.released), text(answer.isRepeated), text(answer.isDetailed),
            snapshot.plan.name, snapshot.state.rawValue, text(snapshot.denialReason?.rawValue), snapshot.period.label,
            text(snapshot.used), text(snapshot.held), text(snapshot.limit), text(snapshot.startedAt),
            text(snapshot.resetsAt), text(snapshot.expiresAt), text(snapshot.previousPlan), text(snapshot.renews),
            text(snapshot.observedAt), text(answer.isShadow),
            text(snapshot.window?.limit), text(snapshot.window?.openedAt), text(snapshot.window?.endsAt),
            text(snapshot.windowUsed), text(snapshot.windowHeld), text(answer.requested),
        ]
    }

    /// Decodes the results; nil if the text is not one that `text(_:)` returns, because the receipt was edited.
    ///
    /// - Parameters:
    ///   - users: the users of the requests, in their order.
    ///   - plan: finds the plan with this name.
    static func results(
        _ text: String,
        of users: [UserID],
        plan: (String) -> Plan?
    ) -> [SlowPathResult]? {
        let records = text.split(separator: request, omittingEmptySubsequences: false)
        guard records.count == users.count else { return nil }
        var results: [SlowPathResult] = []
        for (record, user) in zip(records, users) {
            let values = record.split(separator: field, omittingEmptySubsequences: false).map { String($0) }
            if let failure = failures[values[0]], values.count == 1 {
                results.append(SlowPathResult(failure))
            } else if values.count == fieldsOfAnswer, let result = SlowPathResult(values, of: user, plan) {
                results.append(result)
            } else {
                return nil
            }
        }
        return results
    }
}

extension SlowPathResult {
    fileprivate init?(_ values: [String], of user: UserID, _ plan: (String) -> Plan?) {
        func instant(_ text: String) -> Instant? { Int64(text).map { Instant(microsecondsSince1970: $0) } }
        guard let status = Answer.Status(values[0], reason: values[1]), let messagesCounted = Int(values[2]),
            let isRepeated = Bool(values[6]), let isDetailed = Bool(values[7]), let plan = plan(values[8]),
            let state = SubscriptionState(rawValue: values[9]), let used = Int(values[12]), let held = Int(values[13]),
            let startedAt = instant(values[15]), let observedAt = instant(values[20]), let isShadow = Bool(values[21]),
            let windowUsed = Int(values[25]), let windowHeld = Int(values[26]), let requested = Int(values[27])
        else { return nil }
        let snapshot = UsageSnapshot(
            plan: plan,
            state: state,
            period: BillingPeriod(storedLabel: values[11]),
            used: used,
            held: held,
            limit: Int(values[14]),
            window: Int(values[22]).map {
                UsageWindow(limit: $0, openedAt: instant(values[23]), endsAt: instant(values[24]))
            },
            windowUsed: windowUsed,
            windowHeld: windowHeld,
            denialReason: DenialReason(rawValue: values[10]),
            startedAt: startedAt,
            resetsAt: instant(values[16]),
            expiresAt: instant(values[17]),
            previousPlan: values[18].isEmpty ? nil : values[18],
            renews: Bool(values[19]),
            observedAt: observedAt
        )
        self.init(
            Answer(
                user: user,
                status: status,
                snapshot: snapshot,
                crossed: Tier(rawValue: values[3]),
                retryAfterSeconds: Int64(values[4]),
                released: Int(values[5]),
                requested: requested,
                isShadow: isShadow,
                isRepeated: isRepeated,
                isDetailed: isDetailed
            ),
            messagesCounted: messagesCounted
        )
    }
}

extension Answer.Status {
    fileprivate init?(_ name: String, reason: String) {
        switch name {
        case "allowed": self = .allowed
        case "held": self = .held
        case "ok": self = .ok
        case "blocked":
            guard let reason = DenialReason(rawValue: reason) else { return nil }
            self = .blocked(reason)
        default: return nil
        }
    }
}
