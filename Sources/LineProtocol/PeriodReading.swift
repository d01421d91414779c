import Usage

extension PeriodUsage {
    /// `+PERIOD …` read back. Nil for anything else.
    ///
    /// - Parameter line: without its plus sign.
    public init?(periodLine line: String) {
        guard let line = FieldLine("+" + line), line.status == "PERIOD", let user = line["user"].flatMap(UserID.init),
            let period = line["period"], let used = line["used"].flatMap({ Int($0) }), let limit = line["limit"],
            limit == "unlimited" || Int(limit) != nil, let tier = line["tier"].flatMap(Tier.init(rawValue:))
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
            let messages = line["messages"].flatMap({ Int($0) })
        else { return nil }
        self.init(period: BillingPeriod(storedLabel: period))
        for tier in Tier.allCases {
            guard let users = line[tier.rawValue].flatMap({ Int($0) }) else { return nil }
            add(users: users, in: tier, messages: 0)
        }
        self.messages = messages
    }
}
