import Engine
import TestSupport
import Usage

@testable import HTTPServer

/// Figures of a product with some thousand users.
enum DashboardFixtures {
    static let paid = Plan(name: "paid", label: "Premium", cycle: .monthly, allowance: 800)
    static let trial = Plan(name: "trial", label: "Trial", cycle: .trial(days: 3), allowance: 100)

    static func report(
        _ label: String,
        messages: Int,
        silent: Int,
        gentle: Int = 0,
        prominent: Int = 0,
        blocked: Int = 0
    ) -> PeriodReport {
        var report = PeriodReport(period: billingPeriod(label))
        report.add(users: silent, in: .silent, messages: messages)
        report.add(users: gentle, in: .gentle, messages: 0)
        report.add(users: prominent, in: .prominent, messages: 0)
        report.add(users: blocked, in: .blocked, messages: 0)
        return report
    }

    /// Periods that were counted now.
    static func periods(
        _ reports: [PeriodReport],
        open: PeriodReport = PeriodReport(period: .open),
        current: String = "2026-11",
        plans: [BillingPeriod: [PlanReport]] = [:]
    ) -> Figure<AllPeriods> {
        .now(AllPeriods(current: billingPeriod(current), open: open, reports: reports, plans: plans))
    }

    static let overview = OverviewFigures(
        periods: .loaded(
            AllPeriods(
                current: billingPeriod("2026-11"),
                open: report("open", messages: 1_325_113, silent: 11_212, gentle: 1_112, prominent: 341, blocked: 518),
                reports: [
                    report("2026-09", messages: 1_903_220, silent: 9_000, gentle: 700, prominent: 200, blocked: 120),
                    report("2026-10", messages: 2_211_908, silent: 9_500, gentle: 900, prominent: 260, blocked: 180),
                    report("2026-11", messages: 1_284_091, silent: 10_412, gentle: 1_022, prominent: 311, blocked: 207),
                    report("trial", messages: 41_022, silent: 800, gentle: 90, prominent: 30, blocked: 311),
                ],
                plans: [
                    .open: [
                        PlanReport(plan: "paid", users: 11_100, messages: 1_290_000, blocked: 407),
                        PlanReport(plan: "trial", users: 412, messages: 31_000, blocked: 111),
                        PlanReport(plan: nil, users: 7, messages: 113, blocked: 0),
                    ],
                    billingPeriod("2026-11"): [
                        PlanReport(plan: "paid", users: 11_952, messages: 1_284_091, blocked: 207)
                    ],
                ]
            ),
            age: .seconds(3),
            error: nil
        ),
        period: .open,
        top: .loaded(
            (0..<10).map { index in
                PeriodUsage(
                    user: TestSupport.user(1 + UInt64(index)),
                    period: billingPeriod("2026-11"),
                    used: 900 - index * 37,
                    limit: index == 0 ? nil : 800,
                    tier: Tier(used: 900 - index * 37, limit: index == 0 ? nil : 800, plan: paid)
                )
            },
            age: .seconds(12),
            error: nil
        ),
        days: .now(
            (0..<30).map { index in
                DailyActivity(
                    day: CivilDate(
                        daysSince1970: CivilDate(year: 2026, month: 10, day: 23).daysSince1970 + Int64(index)
                    ),
                    messages: index * 7_919 % 61_000 + 20_000,
                    blocked: index * 31 % 400
                )
            }
        ),
        billing: .now(
            BillingOverview(
                plans: [paid, Plan.pro, trial],
                failedEvents: [
                    BillingOverview.FailedEvent(
                        name: BillingEventLog.Name(source: "revenuecat", id: "renewal & more"),
                        type: "RENEWAL",
                        receivedAt: at("2026-11-21T16:00:00Z"),
                        user: TestSupport.user(3),
                        problem: "the product gold_monthly is not mapped"
                    ),
                    BillingOverview.FailedEvent(
                        name: BillingEventLog.Name(source: "stripe", id: "evt_1"),
                        type: "invoice.paid",
                        receivedAt: at("2026-11-20T16:00:00Z"),
                        user: nil,
                        problem: "no user is known for the customer"
                    ),
                ],
                failedCount: 2
            )
        ),
        live: LiveFigures(info: ["answers_per_second=1284.3", "latency_p99_us=1840", "queue_depth=3", "database=up"])
    )

    /// - Parameter ends: the end of the paid time or of the grace period.
    static func answer(_ used: Int, state: SubscriptionState, denialReason: DenialReason? = nil, ends: String) -> Answer
    {
        UsageSnapshot.monthly(
            used: used,
            plan: paid,
            state: state,
            denialReason: denialReason,
            expiresAt: at(ends),
            observedAt: at("2026-11-21T17:05:09Z")
        ).usage(of: ada)
    }

    static func answer(_ used: Int, limit: Int? = 800, plan: Plan = paid, held: Int = 0) -> Answer {
        UsageSnapshot(
            plan: plan,
            state: plan.isTrial ? .trial : .active,
            period: billingPeriod(plan.isTrial ? "trial" : "2026-11"),
            used: used,
            held: held,
            limit: limit,
            startedAt: at("2026-11-20T09:30:00Z"),
            resetsAt: plan.isTrial ? nil : at("2026-12-01"),
            expiresAt: plan.isTrial ? at("2026-11-23T09:30:00Z") : nil,
            observedAt: at("2026-11-21T17:05:09Z")
        ).usage(of: ada)
    }

    static let subscription: UserDetails.Subscription = {
        var subscription = UserDetails.Subscription(transaction: "2000000123456789", plan: "paid")
        subscription.startedAt = at("2026-09-01T10:00:00Z")
        subscription.expiresAt = at("2026-12-01T10:00:00Z")
        subscription.product = "premium_monthly"
        return subscription
    }()

    static let user = UserFigures(
        user: ada,
        usage: .success(answer(772, held: 2)),
        history: .success([
            PeriodUsage(user: ada, period: billingPeriod("2026-11"), used: 772, limit: 800, tier: .prominent),
            PeriodUsage(user: ada, period: billingPeriod("2026-10"), used: 800, limit: 800, tier: .blocked),
            PeriodUsage(user: ada, period: billingPeriod("2026-09"), used: 512, limit: 800, tier: .silent),
            PeriodUsage(user: ada, period: billingPeriod("trial"), used: 64, limit: 100, tier: .silent),
        ]),
        records: .success(
            UserDetails(
                subscriptions: [subscription],
                events: [
                    UserDetails.Event(
                        at: at("2026-11-01T10:00:00Z"),
                        name: BillingEventLog.Name(source: "revenuecat", id: "1"),
                        type: "RENEWAL",
                        outcome: "applied",
                        detail: "expires 2026-12-01T10:00:00Z, plan paid, state active",
                        problem: nil
                    ),
                    UserDetails.Event(
                        at: at("2026-10-02T08:10:00Z"),
                        name: BillingEventLog.Name(source: "revenuecat", id: "2"),
                        type: "NON_RENEWING_PURCHASE",
                        outcome: "failed",
                        detail: nil,
                        problem: "the product tokens_50 is not mapped"
                    ),
                ],
                changes: [
                    AuditTrailReader.Event(
                        at: at("2026-11-12T12:31:07Z"),
                        what: "reset",
                        detail: "count 801 → 0, limit 800, period 2026-11",
                        actor: "token:ann",
                        reason: "outage of the 12th"
                    ),
                    AuditTrailReader.Event(
                        at: at("2026-09-01T10:00:02Z"),
                        what: "store_event",
                        detail: "plan trial → paid, state trial → active",
                        actor: "headroom_service",
                        reason: nil
                    ),
                ]
            )
        ),
        allowances: .success([])
    )

    /// An account on a plan with limits of a model, of models that share a limit, and of members. It has some.
    static func account(members: Int = 2) -> UserFigures {
        let limits = [
            PlanLimit(.model, "gpt-5", label: "Large", window: Plan.Window(messages: 50, seconds: 10_800), weight: 5),
            PlanLimit(.model, "mini*", allowance: 500, fallback: "nano"),
            PlanLimit(.member, "*", allowance: 100),
        ]
        let plan = Plan(name: "team", label: "Team", cycle: .monthly, allowance: 2_000, limits: limits)
        var large = ReportedAllowance(kind: .model, name: "gpt-5", used: 60, held: 0, tier: .prominent, weight: 5)
        (large.label, large.windowLimit, large.windowUsed) = ("Large", 50, 48)
        large.windowResetsAt = at("2026-11-21T19:30:00Z")
        var small = ReportedAllowance(kind: .model, name: "mini*", used: 500, held: 0, tier: .blocked)
        (small.label, small.limit, small.fallback) = ("mini*", 500, "nano")
        var figures = user
        figures.usage = .success(answer(300, limit: 2_000, plan: plan))
        figures.allowances = .success(
            [large, small]
                + (0..<members).map { index in
                    let name = "\(TestSupport.user(1 + UInt64(index)))"
                    var member = ReportedAllowance(kind: .member, name: name, used: index, held: 3, tier: .silent)
                    member.limit = 100
                    return member
                }
        )
        return figures
    }

    static let actions = UserPage.Actions(
        user: ada.description,
        csrfToken: "5ea1",
        period: "November 2026",
        plan: UserPage.PlanForm(plans: [paid, Plan.pro, trial], selectedPlan: "pro")
    )

    /// - Parameter users: the number of users in the list.
    static func list(_ users: Int, tier: Tier? = .blocked, plan: String? = nil) -> UserListFigures {
        UserListFigures(
            query: UserListQuery(period: .open, tier: tier, plan: plan),
            users: .loaded(
                (0..<users).map { index in
                    PeriodUsage(
                        user: TestSupport.user(1 + UInt64(index)),
                        period: billingPeriod("2026-11"),
                        used: 5_000 - index,
                        limit: 800,
                        tier: .blocked
                    )
                },
                age: .seconds(3),
                error: nil
            ),
            periods: overview.periods,
            billing: overview.billing
        )
    }

    static func frame(_ title: String) -> Frame {
        Frame(title: title, version: "1.2.3", csrfToken: "5ea1", signedInAs: "ann", isOverview: title == "Overview")
    }
}

extension Figure {
    /// A value that was read now.
    static func now(_ value: Value) -> Figure { .loaded(value, age: .zero, error: nil) }
}

extension PageLibrary {
    func overview(_ figures: OverviewFigures = DashboardFixtures.overview, mayChange: Bool = false) -> String {
        let presenter = OverviewPresenter(figures: figures, mayChange: mayChange)
        return render(.overview, presenter.page(DashboardFixtures.frame("Overview")))
    }

    func user(
        _ figures: UserFigures = DashboardFixtures.user,
        mayChange: Bool = true,
        part: String? = nil
    ) -> String {
        let search = PartSearch(part, in: nil)
        let presenter = UserPresenter(figures: figures, mayChange: mayChange, partSearch: search)
        var actions = mayChange ? DashboardFixtures.actions : nil
        actions?.resetChoice = presenter.resetChoice(selected: nil)
        let windowChoice = presenter.windowChoice(selected: nil)
        actions?.windowChoice = windowChoice
        actions?.hasWindow = windowChoice != nil
        let page =
            presenter
            .page(DashboardFixtures.frame("User"), notices: [], actions: actions)
        return render(.user, page)
    }
}
