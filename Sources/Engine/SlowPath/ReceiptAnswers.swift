import Usage

/// The results of a batch on the slow path as text, for the lane's receipt: if the reply to the commit is lost, the
/// batch is answered from it.
enum ReceiptAnswers {
    // Characters that no name of a plan or a period contains.
    private static let field: Character = "\u{1F}"
    private static let request: Character = "\u{1E}"

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
        let snapshot = result.snapshot
        func instant(_ instant: Instant?) -> String { instant.map { String($0.microsecondsSince1970) } ?? "" }
        return [
            result.verdict.rawValue, String(result.messages), String(result.isReplay), snapshot.plan.name,
            snapshot.state.rawValue, snapshot.denialReason?.rawValue ?? "", snapshot.period.label,
            String(snapshot.used), String(snapshot.held), snapshot.limit.map { String($0) } ?? "",
            instant(snapshot.startedAt), instant(snapshot.resetsAt), instant(snapshot.expiresAt),
            snapshot.previousPlan ?? "", snapshot.renews.map { String($0) } ?? "", instant(snapshot.observedAt),
        ]
    }

    /// Nil if the text is not one that `text(_:)` returns: the receipt was edited.
    ///
    /// - Parameter plan: the plan with this name.
    static func results(
        _ text: String,
        plan: (String) -> Plan?
    ) -> [SlowPathResult]? {
        var results: [SlowPathResult] = []
        for record in text.split(separator: request, omittingEmptySubsequences: false) {
            let values = record.split(separator: field, omittingEmptySubsequences: false).map { String($0) }
            guard values.count == 16, let result = SlowPathResult(values, plan) else { return nil }
            results.append(result)
        }
        return results
    }
}

extension SlowPathResult {
    fileprivate init?(_ values: [String], _ plan: (String) -> Plan?) {
        func instant(_ text: String) -> Instant? { Int64(text).map { Instant(microsecondsSince1970: $0) } }
        guard let verdict = Verdict(rawValue: values[0]), let messages = Int(values[1]),
            let isReplay = Bool(values[2]), let plan = plan(values[3]),
            let state = SubscriptionState(rawValue: values[4]), let used = Int(values[7]), let held = Int(values[8]),
            let startedAt = instant(values[10]), let observedAt = instant(values[15])
        else { return nil }
        self.init(
            snapshot: UsageSnapshot(
                plan: plan,
                state: state,
                period: BillingPeriod(storedLabel: values[6]),
                used: used,
                held: held,
                limit: Int(values[9]),
                denialReason: DenialReason(rawValue: values[5]),
                startedAt: startedAt,
                resetsAt: instant(values[11]),
                expiresAt: instant(values[12]),
                previousPlan: values[13].isEmpty ? nil : values[13],
                renews: Bool(values[14]),
                observedAt: observedAt
            ),
            verdict: verdict,
            messages: messages,
            isReplay: isReplay
        )
    }
}
