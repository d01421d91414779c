/// Everybody's usage: a billing period at a glance, and how it came about.
struct OverviewPage {
    struct PeriodOption {
        var value: String
        var text: String
        var isSelected: Bool
    }

    struct Glance {
        var messages: String
        var users: String
        var average: String
        var blocked: String
        var blockedShare: String
        var hasBlocked: Bool
        var bar: String
        var tiers: [TierRow]
        var age: String
    }

    struct TierRow {
        /// Also a class of the stylesheet's.
        var name: String
        var meaning: String
        var users: String
        var share: String
    }

    struct Chart {
        var svg: String
        /// Of the first column of the table.
        var unit: String
        var hasBlocked: Bool
        var rows: [Row]
        var note: String?
        var age: String

        struct Row {
            var name: String
            var link: String?
            var messages: String
            var blocked: String?
            var users: String?
            var isUnfinished: Bool
        }
    }

    struct Top {
        var rows: [Row]
        var age: String

        struct Row {
            var rank: Int
            var user: String
            var used: String
            var limit: String
            var share: String
            var tier: String
        }
    }

    /// A part that cannot be shown, and what to do.
    struct Missing {
        var text: String
    }

    /// Seconds until a page reads itself again: while a figure is being read, and else.
    static let (soon, later) = (2, 15)

    var frame: Frame
    var refreshSeconds: Int
    var notices: [Notice]
    /// In place of figures, where there is nothing to show.
    var firstSteps: FirstSteps?
    var hasCharts: Bool
    var periods: [PeriodOption]
    var heading: String
    var explanation: String
    var glance: Glance?
    var glanceMissing: Missing?
    var live: LiveView
    var days: Chart?
    var daysMissing: Missing?
    var history: Chart?
    var historyMissing: Missing?
    var top: Top?
    var topMissing: Missing?
    var plans: PlansPart?
    var plansMissing: Missing?
    var failedEvents: FailedEventsPart?
    var failedEventsMissing: Missing?

    static let template = """
        {{<frame}}{{$main}}
        <div class="title">
        <h1>Overview</h1>
        <form class="inline" method="get" action="/dashboard">
        <label for="period">Billing period</label>
        <select id="period" name="period">
        {{#periods}}
        <option value="{{value}}"{{#isSelected}} selected{{/isSelected}}>{{text}}</option>
        {{/periods}}
        </select>
        <button type="submit">Show</button>
        </form>
        </div>
        <div data-part="notices" data-refresh="{{refreshSeconds}}">{{#notices}}{{>notice}}{{/notices}}</div>
        <section data-part="first-steps"{{^firstSteps}} hidden{{/firstSteps}}>
        {{#firstSteps}}
        <div class="heading"><h2>What to do first</h2><p class="age">Nobody has sent a message yet.</p></div>
        {{>first-steps}}
        {{/firstSteps}}
        </section>
        <section data-part="glance"{{#firstSteps}} hidden{{/firstSteps}}>
        <div class="heading"><h2 id="glance-heading">{{heading}}</h2><p class="age">{{explanation}}{{#glance}} Counted {{age}}.{{/glance}}</p></div>
        {{#glance}}
        <dl class="figures">
        <div class="figure main"><dt>Messages</dt><dd>{{messages}}</dd><dd class="more">{{average}}</dd></div>
        <div class="figure"><dt>Users</dt><dd>{{users}}</dd><dd class="more">with usage in this period</dd></div>
        <div class="figure{{#hasBlocked}} blocked{{/hasBlocked}}"><dt>Blocked users</dt><dd>{{blocked}}</dd><dd class="more">{{blockedShare}} of them have used it up</dd></div>
        </dl>
        <div class="card">
        <h3>Users by tier</h3>
        {{{bar}}}
        <table class="tiers">
        <caption class="hidden">Users by tier in {{heading}}</caption>
        <thead><tr><th scope="col">Tier</th><th scope="col" class="number">Users</th><th scope="col" class="number">Share</th></tr></thead>
        <tbody>
        {{#tiers}}
        <tr><th scope="row"><span class="swatch {{name}}" aria-hidden="true"></span>{{name}} <span class="muted">{{meaning}}</span></th><td class="number">{{users}}</td><td class="number">{{share}}</td></tr>
        {{/tiers}}
        </tbody>
        </table>
        <p class="note">The percentages are the usual ones; a plan may have its own.</p>
        </div>
        {{/glance}}
        {{#glanceMissing}}<p class="card empty">{{text}}</p>{{/glanceMissing}}
        </section>
        {{#live}}{{>live}}{{/live}}
        <section data-part="days"{{^hasCharts}} hidden{{/hasCharts}}>
        {{#hasCharts}}
        <div class="heading"><h2 id="days-heading">Messages by day</h2><p class="age">The last 30 days, by the UTC day.{{#days}} Read {{age}}.{{/days}}</p></div>
        {{#days}}{{>chart}}{{/days}}
        {{#daysMissing}}<p class="card empty">{{text}}</p>{{/daysMissing}}
        {{/hasCharts}}
        </section>
        <section data-part="plans">
        <div class="heading"><h2 id="plans-heading">Plans and trials</h2><p class="age">{{heading}}, by plan; trials as they are now.{{#plans}} Counted {{age}}.{{/plans}}</p></div>
        {{#plans}}{{>plans}}{{/plans}}
        {{#plansMissing}}<p class="card empty">{{text}}</p>{{/plansMissing}}
        </section>
        <section data-part="history"{{^hasCharts}} hidden{{/hasCharts}}>
        {{#hasCharts}}
        <div class="heading"><h2 id="history-heading">Messages by billing period</h2><p class="age">The last 12 months in which periods began.{{#history}} Counted {{age}}.{{/history}}</p></div>
        {{#history}}{{>chart}}{{/history}}
        {{#historyMissing}}<p class="card empty">{{text}}</p>{{/historyMissing}}
        {{/hasCharts}}
        </section>
        <section data-part="top"{{^hasCharts}} hidden{{/hasCharts}}>
        {{#hasCharts}}
        <div class="heading"><h2 id="top-heading">Top users</h2><p class="age">{{heading}}, most messages first.{{#top}} Counted {{age}}.{{/top}}</p></div>
        {{#top}}
        <div class="card scroll" role="group" aria-labelledby="top-heading" tabindex="0">
        <table class="list top-users">
        <thead><tr><th scope="col" class="number">#</th><th scope="col">User</th><th scope="col" class="number">Messages</th><th scope="col">Tier</th><th scope="col" class="number">Used</th><th scope="col" class="number">Limit</th></tr></thead>
        <tbody>
        {{#rows}}
        <tr><td class="number">{{rank}}</td><th scope="row"><a class="id" href="/dashboard/users/{{user}}">{{user}}</a></th><td class="number">{{used}}</td><td><span class="tier {{tier}}">{{tier}}</span></td><td class="number">{{share}}</td><td class="number">{{limit}}</td></tr>
        {{/rows}}
        </tbody>
        </table>
        </div>
        {{/top}}
        {{#topMissing}}<p class="card empty">{{text}}</p>{{/topMissing}}
        {{/hasCharts}}
        </section>
        <section data-part="failed-events">
        <div class="heading"><h2 id="failed-events-heading">Store events that failed</h2>{{#failedEvents}}<p class="age">Read {{age}}.</p>{{/failedEvents}}</div>
        {{#failedEvents}}{{>failed-events}}{{/failedEvents}}
        {{#failedEventsMissing}}<p class="card empty">{{text}}</p>{{/failedEventsMissing}}
        </section>
        {{/main}}{{/frame}}

        """

    /// A chart, and the same as a table.
    static let chartTemplate = """
        <div class="card">
        <div class="chart">{{{svg}}}</div>
        {{#note}}<p class="note">{{note}}</p>{{/note}}
        <details>
        <summary>The same as a table</summary>
        <div class="scroll">
        <table class="list compact">
        <thead><tr><th scope="col">{{unit}}</th><th scope="col" class="number">Messages</th>{{#hasBlocked}}<th scope="col" class="number">Refused</th>{{/hasBlocked}}{{^hasBlocked}}<th scope="col" class="number">Users</th>{{/hasBlocked}}</tr></thead>
        <tbody>
        {{#rows}}
        <tr><th scope="row">{{#link}}<a href="{{link}}">{{name}}</a>{{/link}}{{^link}}{{name}}{{/link}}{{#isUnfinished}} <span class="muted">so far</span>{{/isUnfinished}}</th><td class="number">{{messages}}</td><td class="number">{{blocked}}{{users}}</td></tr>
        {{/rows}}
        </tbody>
        </table>
        </div>
        </details>
        </div>

        """
}

/// What the service does at this moment.
struct LiveView {
    var rate: String
    var p99: String
    var queue: String
    var database: String
    /// Also a class of the stylesheet's.
    var databaseState: String
    var sentence: String

    static let template = """
        <section id="live" data-source="/dashboard/live">
        <div class="heading"><h2 id="live-heading">Right now</h2><p class="age"><span id="live-state">As this page was made; reload it for newer numbers.</span> <button id="live-pause" class="quiet small" type="button" hidden>Pause</button></p></div>
        <dl class="figures four">
        <div class="figure"><dt>Answers a second</dt><dd id="live-rate">{{rate}}</dd><dd class="more">from the store, in the last 5 s</dd></div>
        <div class="figure"><dt>Slowest 1 %</dt><dd id="live-p99">{{p99}}</dd><dd class="more">p99 from request to answer</dd></div>
        <div class="figure"><dt>Waiting</dt><dd id="live-queue">{{queue}}</dd><dd class="more">requests in the queue</dd></div>
        <div class="figure"><dt>Database</dt><dd><span id="live-database" class="state {{databaseState}}">{{database}}</span></dd><dd class="more">of this instance</dd></div>
        </dl>
        <div class="card" id="live-chart" hidden>
        <h3>The last minute</h3>
        <div class="chart"><svg class="numbers short" height="72" aria-hidden="true"><text id="live-top" x="100%" y="14" text-anchor="end">0</text><text x="100%" y="68" text-anchor="end">0</text></svg><svg class="columns short" height="72" viewBox="0 0 600 72" preserveAspectRatio="none" role="img" aria-label="Answers a second over the last minute; the number is above"><line class="base" x1="0" x2="600" y1="66" y2="66"/><polyline id="live-line" class="line" points=""/></svg></div>
        </div>
        <p id="live-words" class="hidden" role="status" aria-live="polite">{{sentence}}</p>
        </section>

        """
}
