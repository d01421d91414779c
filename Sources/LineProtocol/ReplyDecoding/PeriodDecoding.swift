import Usage

extension FieldLine {
    /// Reads a number of messages or users that is so small that the sum over all tiers cannot overflow.
    fileprivate func count(_ name: String) -> Int? {
        guard let number = self[name].flatMap({ Int($0) }), (0...Int.max / Tier.allCases.count).contains(number) else {
            return nil
        }
        return number
    }
}

extension PeriodUsage {
    /// Decodes `+PERIOD …`. It is nil for anything else.
    ///
    /// - Parameter line: the line without its plus sign.
    public init?(periodLine line: String) {
        guard let line = FieldLine("+" + line), line.status == "PERIOD", let user = line["user"].flatMap(UserID.init),
            let period = line["period"], let used = line.count("used"), let limit = line["limit"],
            limit == "unlimited" || line.count("limit") != nil,
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
    /// Decodes `+REPORT …`. It is nil for anything else.
    ///
    /// - Parameter line: the line without its plus sign.
    public init?(reportLine line: String) {
        guard let line = FieldLine("+" + line), line.status == "REPORT", let period = line["period"],
            let messages = line.count("messages")
        else { return nil }
        self.init(period: BillingPeriod(storedLabel: period))
        for tier in Tier.allCases {
            guard let users = line.count(tier.rawValue) else { return nil }
            add(users: users, in: tier, messages: 0)
        }
        self.messages = messages
    }
}
