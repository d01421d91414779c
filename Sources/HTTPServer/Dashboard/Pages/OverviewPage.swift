/// The usage of all users: one billing period, and its history. Each section has either its content or a placeholder,
/// which says why there is none.
struct OverviewPage {
    /// Seconds until the page's script fetches the page again.
    static let (refreshSecondsWhileLoading, refreshSeconds) = (2, 15)

    var frame: Frame
    var refreshSeconds: Int
    var notices: [Notice]
    /// For a new installation, in place of figures.
    var firstSteps: FirstSteps?
    var hasCharts: Bool
    var periods: [PeriodOptions.Option]
    var isPeriodsTruncated: Bool
    var heading: String
    var explanation: String
    var summary: PeriodSummary?
    var summaryPlaceholder: String?
    var live: LiveView
    var days: ChartSection?
    var daysPlaceholder: String?
    var history: ChartSection?
    var historyPlaceholder: String?
    var top: TopUsersSection?
    var topPlaceholder: String?
    var plans: PlansSection?
    var plansPlaceholder: String?
    var failedEvents: FailedEventsSection?
    var failedEventsPlaceholder: String?
}
