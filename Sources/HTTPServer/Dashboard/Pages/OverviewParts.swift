/// Plans with their users in a period, and the trials there are now.
struct PlansPart {
    struct Row {
        var label: String
        /// As requests name it.
        var name: String?
        var allowance: String
        var users: String
        var messages: String
        var blocked: String
        /// The users, for the order of rows.
        var count: Int
    }

    struct Trials {
        /// Of the plan.
        var label: String
        var running: String
        var usedUp: String
        var over: String
    }

    var trials: [Trials]
    var rows: [Row]
    var hasRows: Bool
    var age: String

    static let template = """
        {{#trials}}
        <dl class="figures">
        <div class="figure main"><dt>{{label}}: running now</dt><dd>{{running}}</dd><dd class="more">with messages left</dd></div>
        <div class="figure"><dt>{{label}}: used up</dt><dd>{{usedUp}}</dd><dd class="more">before their days were over</dd></div>
        <div class="figure"><dt>{{label}}: over</dt><dd>{{over}}</dd><dd class="more">ended, or followed by a plan</dd></div>
        </dl>
        {{/trials}}
        {{#hasRows}}
        <div class="card scroll" role="group" aria-labelledby="plans-heading" tabindex="0">
        <table class="list">
        <thead><tr><th scope="col">Plan</th><th scope="col" class="number">Users</th><th scope="col" class="number">Messages</th><th scope="col" class="number">Blocked</th><th scope="col">Allowance</th></tr></thead>
        <tbody>
        {{#rows}}
        <tr><th scope="row">{{label}}{{#name}} <span class="muted">{{name}}</span>{{/name}}</th><td class="number">{{users}}</td><td class="number">{{messages}}</td><td class="number">{{blocked}}</td><td>{{allowance}}</td></tr>
        {{/rows}}
        </tbody>
        </table>
        </div>
        {{/hasRows}}

        """
}

/// The newest store events that could not be applied.
struct FailedEventsPart {
    struct Event {
        var at: TimeText
        var source: String
        var type: String
        var user: String?
        var problem: String
    }

    /// `3 store events`
    var count: String
    var events: [Event]
    var age: String

    static let template = """
        <ol class="card entries">
        {{#events}}
        <li><p class="when">{{#at}}{{>time}}{{/at}}</p><div><p><strong>{{type}}</strong> <span class="muted">{{source}}</span></p><p class="mistake">{{problem}}</p>{{#user}}<p><a class="id" href="/dashboard/users/{{user}}">{{user}}</a></p>{{/user}}</div></li>
        {{/events}}
        </ol>
        <p class="note">{{count}} in all, newest first. Do what each says, then <code>headroom events replay --failed</code> applies them; <code>headroom events list --failed</code> lists all.</p>

        """
}

/// What to do with an installation that has counted nothing yet.
struct FirstSteps {
    /// Counts a first message from a terminal; nil where no plain line can be sent.
    var command: String?

    static let template = """
        <ol class="card steps">
        <li><h3>Count a first message</h3>
        {{#command}}<p>In a terminal on this machine:</p>
        <pre tabindex="0"><code>{{command}}</code></pre>{{/command}}
        {{^command}}<p>Send <code>CONSUME</code> and a user’s UUID to the service’s port, with any Redis client.</p>{{/command}}
        <p class="note">The answer begins with ALLOWED, and this page shows the message some seconds later.</p></li>
        <li><h3>Let your chat backend ask before every message</h3>
        <p><code>docs/clients.md</code> has a program to paste for each language.</p></li>
        <li><h3>Say who has which plan</h3>
        <p>A user whom nobody named starts a trial with the first message. <code>SETPLAN</code> puts a user on another plan; App Store, RevenueCat and Stripe do it by webhook (<code>docs/operations.md</code>, Stores).</p></li>
        <li><h3>Make a token before other machines reach the ports</h3>
        <p><code>headroom token create backend --scope chat</code></p></li>
        </ol>

        """
}
