import Usage

/// The users of a tier or a plan, those with the most messages first.
struct UserListPage {
    var frame: Frame
    /// Seconds until the page's script fetches the page again; nil once the list is read.
    var refreshSeconds: Int?
    var notices: [Notice]
    var periods: [PeriodOptions.Option]
    var tiers: [UserPage.Option]
    var plans: [UserPage.Option]
    var heading: String
    var age: String?
    var rows: [TopUsersSection.Row]
    var hasRows: Bool
    /// Says why there are no rows.
    var placeholder: String?
    /// `Users 51 to 100 of 518`
    var position: String
    var previousLink: String?
    var nextLink: String?
    /// Not all users are listed.
    var isTruncated: Bool
}

/// The users to list: the query of `GET /dashboard/list`.
struct UserListQuery: Hashable, Sendable {
    /// Of the list, and of a page of it. One scan of the table reads the whole list.
    static let (usersMaximum, pageSize) = (1_000, 50)
    static let pagesMaximum = usersMaximum / pageSize

    var period: BillingPeriod
    /// Nil is every tier.
    var tier: Tier?
    /// Nil is every plan.
    var plan: String?

    init(period: BillingPeriod, tier: Tier? = nil, plan: String? = nil) {
        self.period = period
        self.tier = tier
        self.plan = plan
    }

    /// - Returns: nil if a value is malformed.
    init?(_ fields: [String: String]) {
        func value(_ name: String) -> String? { fields[name].flatMap { $0.isEmpty ? nil : $0 } }
        guard let period = value("period").map({ BillingPeriod($0) }) ?? BillingPeriod.open else { return nil }
        self.period = period
        tier = value("tier").flatMap { Tier(rawValue: $0) }
        plan = value("plan")
        guard (tier != nil) == (value("tier") != nil), plan.map(Plan.isName) ?? true else { return nil }
    }

    /// - Parameter page: from 1.
    func path(page: Int = 1) -> String {
        "/dashboard/list?"
            + FormFields.query([
                ("period", period.label), ("tier", tier?.rawValue), ("plan", plan),
                ("page", page == 1 ? nil : String(page)),
            ])
    }
}
