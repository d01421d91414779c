import Usage

private enum PeriodReading {
    /// Of messages or users, where the sum over all tiers is a number too.
    static func count(_ text: String?) -> Int? {
        guard let number = text.flatMap({ Int($0) }), (0...Int.max / Tier.allCases.count).contains(number) else {
            return nil
        }
        return number
    }
}

extension PeriodUsage {
    /// `+PERIOD …` read back. Nil for anything else.
    ///
    /// - Parameter line: without its plus sign.
    public init?(periodLine line: String) {
        guard let line = FieldLine("+" + line), line.status == "PERIOD", let user = line["user"].flatMap(UserID.init),
            let period = line["period"], let used = PeriodReading.count(line["used"]), let limit = line["limit"],
            limit == "unlimited" || PeriodReading.count(limit) != nil,
            let tier = line["tier"].flatMap(Tier.init(rawValue:))
        else { return nil }
        self.init(
            user: user,
            period: BillingPeriod(storedLabel: period),
            used: used,
            limit: Int(limit),
            tier: tier
        )
    }
}

extension PeriodReport {
    /// `+REPORT …` read back. Nil for anything else.
    ///
    /// - Parameter line: without its plus sign.
    public init?(reportLine line: String) {
        guard let line = FieldLine("+" + line), line.status == "REPORT", let period = line["period"],
            let messages = PeriodReading.count(line["messages"])
        else { return nil }
        self.init(period: BillingPeriod(storedLabel: period))
        for tier in Tier.allCases {
            guard let users = PeriodReading.count(line[tier.rawValue]) else { return nil }
            add(users: users, in: tier, messages: 0)
        }
        self.messages = messages
    }
}
