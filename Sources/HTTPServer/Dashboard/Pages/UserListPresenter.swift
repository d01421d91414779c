import Engine
import Usage

/// The values that a list of users shows.
struct UserListFigures: Sendable {
    var query: UserListQuery
    /// At most `UserListQuery.usersMaximum`, the most messages first.
    var users: Figure<[PeriodUsage]>
    /// For the choices of periods and plans.
    var periods: Figure<AllPeriods>
    var billing: Figure<BillingOverview>
}

/// Turns a list of users into texts, a page of it at a time.
struct UserListPresenter {
    let figures: UserListFigures
    /// From 1.
    let page: Int

    private var query: UserListQuery { figures.query }
    private var users: [PeriodUsage] { figures.users.value ?? [] }

    /// The list could not be read.
    var isIncomplete: Bool { figures.users.error != nil }

    /// False for a page after the last one of a list that is read.
    var hasPage: Bool {
        page == 1 || figures.users.value == nil || (page - 1) * UserListQuery.pageSize < users.count
    }

    func page(_ frame: Frame) -> UserListPage {
        let first = (page - 1) * UserListQuery.pageSize
        let shown = users.dropFirst(first).prefix(UserListQuery.pageSize)
        let isTruncated = users.count >= UserListQuery.usersMaximum
        let last = first + shown.count
        let total = NumberText.count(users.count, "user") + (isTruncated ? " or more" : "")
        return UserListPage(
            frame: frame,
            refreshSeconds: refreshSeconds,
            notices: notices,
            periods: PeriodOptions(figures.periods.value, selected: query.period).options,
            tiers: [UserPage.Option(value: "", text: "all tiers", isSelected: query.tier == nil)]
                + Tier.allCases.map {
                    UserPage.Option(value: $0.rawValue, text: $0.rawValue, isSelected: $0 == query.tier)
                },
            plans: plans,
            heading: heading,
            age: figures.users.value == nil ? nil : age,
            rows: shown.enumerated().map { TopUsersSection.Row($1, rank: first + $0 + 1) },
            hasRows: !shown.isEmpty,
            placeholder: shown.isEmpty ? placeholder : nil,
            position: users.count > UserListQuery.pageSize
                ? "\(NumberText.grouped(first + 1)) to \(NumberText.grouped(last)) of \(total)" : total,
            previousLink: page > 1 ? query.path(page: page - 1) : nil,
            nextLink: last < users.count ? query.path(page: page + 1) : nil,
            isTruncated: isTruncated
        )
    }

    /// Nil if there is a list: it stays as it is while somebody reads it. One that could not be read is tried again.
    private var refreshSeconds: Int? {
        if figures.users.isLoading { return OverviewPage.refreshSecondsWhileLoading }
        return figures.users.value == nil ? OverviewPage.refreshSeconds : nil
    }

    private var notices: [Notice] {
        guard let error = figures.users.error else { return [] }
        let rest = figures.users.value == nil ? "" : " The list below is older."
        return [Notice(.warning, error.headline, error.advice + rest)]
    }

    /// The configured plans, and the selected one if it is none of them.
    private var plans: [UserPage.Option] {
        let configured = figures.billing.value?.plans ?? []
        var options = configured.prefix(OverviewPresenter.plansMaximum).map {
            UserPage.Option(plan: $0, isSelected: $0.name == query.plan)
        }
        if let plan = query.plan, !options.contains(where: \.isSelected) {
            options.append(UserPage.Option(value: plan, text: plan, isSelected: true))
        }
        return [UserPage.Option(value: "", text: "all plans", isSelected: query.plan == nil)] + options
    }

    private var heading: String {
        let tier = query.tier.map { "in the tier \($0.rawValue)" }
        let plan = query.plan.map { name in
            "on the plan \(figures.billing.value?.plans.first { $0.name == name }?.label.isolated ?? name)"
        }
        let filter = [tier, plan].compactMap(\.self).joined(separator: " ")
        return TimeText.period(query.period) + (filter.isEmpty ? "" : ": \(filter)")
    }

    private var age: String {
        guard let age = figures.users.age.map(NumberText.age) else { return "" }
        return figures.users.isLoading ? "\(age), being updated now" : age
    }

    private var placeholder: String {
        figures.users.value == nil
            ? OverviewPresenter.placeholder(figures.users) : OverviewPresenter.empty("No such user.", figures.users)
    }
}

extension TopUsersSection.Row {
    init(_ usage: PeriodUsage, rank: Int) {
        self.init(
            rank: NumberText.grouped(rank),
            user: usage.user.description,
            period: usage.period.number > 1 ? TimeText.period(usage.period) : nil,
            used: NumberText.grouped(usage.used),
            limit: usage.limit.map(NumberText.grouped) ?? "unlimited",
            share: usage.limit.map { NumberText.percent(usage.used, of: $0) } ?? "–",
            tier: usage.tier.rawValue
        )
    }
}
