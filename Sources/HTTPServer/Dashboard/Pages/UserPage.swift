/// One user's story: where the user stands, how it came about, and what an operator may do about it.
struct UserPage {
    struct Usage {
        /// `640 of 800`
        var used: String
        var sentence: String
        var bar: String?
        var state: String
        /// Of the stylesheet's.
        var stateLook: String
        var tier: String
        /// Of the stylesheet's; none where the state is what counts.
        var tierLook: String
        var facts: [Fact]
        var age: String
    }

    /// A line of a list of facts: a text, or an instant.
    struct Fact {
        var name: String
        var text: String?
        var time: TimeText?
        var more: String?
    }

    /// What the product shows to this user.
    struct Words {
        var display: String
        var banner: String?
        var notice: String?
        var label: String
        var isSilent: Bool
    }

    struct Period {
        var name: String
        var used: String
        var limit: String
        var share: String
        var tier: String
        var isCurrent: Bool
    }

    struct Subscription {
        var transaction: String
        var plan: String
        var started: TimeText?
        var expires: TimeText?
        var more: String?
    }

    struct Event {
        var at: TimeText
        var source: String
        var type: String
        var outcome: String
        /// Of the stylesheet's.
        var outcomeState: String
        var problem: String?
        var detail: String?
    }

    struct Change {
        var at: TimeText
        var what: String
        /// What was otherwise before; else all that is told.
        var changed: String?
        var unchanged: String?
        var actor: String?
        var reason: String?
    }

    /// The forms of an operator, with what was typed and is to be mended.
    struct Actions {
        var user: String
        var formSeal: String
        /// Nil while usage cannot be read.
        var period: String?
        /// Why the user cannot send all the same.
        var grantCaveat: Notice?
        var resetCaveat: Notice?
        var messages: String?
        var grantReason: String?
        var resetReason: String?
        var messagesMistake: String?
        var grantReasonMistake: String?
        var resetReasonMistake: String?
    }

    var frame: Frame
    var user: String
    var notices: [Notice]
    var usage: Usage?
    var words: Words?
    var actions: Actions?
    var chart: OverviewPage.Chart?
    var periods: [Period]
    var hasPeriods: Bool
    var recordsMissing: OverviewPage.Missing?
    var hasRecords: Bool
    var subscriptions: [Subscription]
    var hasSubscriptions: Bool
    var events: [Event]
    var hasEvents: Bool
    var changes: [Change]
    var hasChanges: Bool
    /// There may be more than these.
    var isCut: Bool

    static let template = """
        {{<frame}}{{$main}}
        <div class="title"><h1>User <span class="id">{{user}}</span></h1></div>
        {{#notices}}{{>notice}}{{/notices}}
        {{#usage}}
        <section>
        <div class="heading"><h2 id="usage-heading">Usage now</h2><p class="age">Read {{age}}.</p></div>
        <div class="card">
        <p class="standing"><span class="state {{stateLook}}">{{state}}</span> <strong>{{used}}</strong> messages <span class="tier {{tierLook}}">{{tier}}</span></p>
        {{{bar}}}
        <p class="note">{{sentence}}</p>
        <dl class="facts">
        {{#facts}}
        <div><dt>{{name}}</dt><dd>{{text}}{{#time}}{{>time}}{{/time}}{{#more}} <span class="muted">{{more}}</span>{{/more}}</dd></div>
        {{/facts}}
        </dl>
        </div>
        </section>
        {{/usage}}
        {{#words}}
        <section>
        <div class="heading"><h2 id="words-heading">What the user is shown</h2><p class="age">Counter: <strong>{{display}}</strong></p></div>
        <div class="card">
        <p class="said label-said">{{label}}</p>
        {{#banner}}<blockquote class="said">{{banner}}</blockquote>{{/banner}}
        {{#notice}}<blockquote class="said">{{notice}}</blockquote>{{/notice}}
        {{#isSilent}}<p class="note">No banner and no notice: there is nothing to say yet.</p>{{/isSilent}}
        </div>
        </section>
        {{/words}}
        {{#actions}}{{>actions}}{{/actions}}
        <section>
        <div class="heading"><h2 id="periods-heading">Billing periods</h2><p class="age">Newest first, 24 at most.</p></div>
        {{#chart}}<div class="card"><div class="chart">{{{svg}}}</div>{{#note}}<p class="note">{{note}}</p>{{/note}}</div>{{/chart}}
        {{#hasPeriods}}
        <div class="card scroll" role="group" aria-labelledby="periods-heading" tabindex="0">
        <table class="list">
        <thead><tr><th scope="col">Period</th><th scope="col" class="number">Messages</th><th scope="col" class="number">Limit</th><th scope="col">Tier</th><th scope="col" class="number">Used</th></tr></thead>
        <tbody>
        {{#periods}}
        <tr><th scope="row">{{name}}{{#isCurrent}} <span class="muted">now</span>{{/isCurrent}}</th><td class="number">{{used}}</td><td class="number">{{limit}}</td><td><span class="tier {{tier}}">{{tier}}</span></td><td class="number">{{share}}</td></tr>
        {{/periods}}
        </tbody>
        </table>
        </div>
        {{/hasPeriods}}
        {{^hasPeriods}}<p class="card empty">No message has been counted for this user yet.</p>{{/hasPeriods}}
        </section>
        {{#recordsMissing}}<p class="card empty">{{text}}</p>{{/recordsMissing}}
        {{#hasRecords}}{{>records}}{{/hasRecords}}
        {{/main}}{{/frame}}

        """

    static let actionsTemplate = """
        <section>
        <div class="heading"><h2 id="actions-heading">Do something about it</h2><p class="age">Asks you once more before anything is changed.</p></div>
        <div class="pair">
        <form class="card" method="post" action="/dashboard/users/{{user}}/grant">
        <h3>Grant messages</h3>
        <p class="note">Raises the limit of the current period{{#period}}, {{period}},{{/period}} at once. The next one begins with the plan’s own allowance.</p>
        {{#grantCaveat}}{{>notice}}{{/grantCaveat}}
        <input type="hidden" name="seal" value="{{formSeal}}">
        <div class="field"><label for="grant-messages">Messages</label>
        {{#messagesMistake}}<p class="mistake" id="grant-messages-mistake">{{messagesMistake}}</p>{{/messagesMistake}}
        <input id="grant-messages" name="messages" inputmode="numeric" autocomplete="off" required maxlength="9" value="{{messages}}"{{#messagesMistake}} aria-invalid="true" aria-describedby="grant-messages-mistake" autofocus{{/messagesMistake}}></div>
        <div class="field"><label for="grant-reason">Reason, for the audit log</label>
        {{#grantReasonMistake}}<p class="mistake" id="grant-reason-mistake">{{grantReasonMistake}}</p>{{/grantReasonMistake}}
        <input id="grant-reason" name="reason" autocomplete="off" required maxlength="1024" value="{{grantReason}}"{{#grantReasonMistake}} aria-invalid="true" aria-describedby="grant-reason-mistake" autofocus{{/grantReasonMistake}}></div>
        <button type="submit">Grant…</button>
        </form>
        <form class="card" method="post" action="/dashboard/users/{{user}}/reset">
        <h3>Reset usage</h3>
        <p class="note">Sets the count of the current period{{#period}}, {{period}},{{/period}} to 0. The audit log keeps the old count.</p>
        {{#resetCaveat}}{{>notice}}{{/resetCaveat}}
        <input type="hidden" name="seal" value="{{formSeal}}">
        <div class="field"><label for="reset-reason">Reason, for the audit log</label>
        {{#resetReasonMistake}}<p class="mistake" id="reset-reason-mistake">{{resetReasonMistake}}</p>{{/resetReasonMistake}}
        <input id="reset-reason" name="reason" autocomplete="off" required maxlength="1024" value="{{resetReason}}"{{#resetReasonMistake}} aria-invalid="true" aria-describedby="reset-reason-mistake" autofocus{{/resetReasonMistake}}></div>
        <button type="submit">Reset…</button>
        </form>
        </div>
        </section>

        """

    /// Subscriptions, the stores' events and the audit log.
    static let recordsTemplate = """
        <section>
        <div class="heading"><h2>Subscriptions</h2></div>
        {{#hasSubscriptions}}
        <ul class="card entries">
        {{#subscriptions}}
        <li><p class="when">{{plan}}</p><div><p class="id">{{transaction}}</p><p>{{#started}}From {{>time}}{{/started}}{{#expires}} until {{>time}}{{/expires}}</p>{{#more}}<p class="note">{{more}}</p>{{/more}}</div></li>
        {{/subscriptions}}
        </ul>
        {{/hasSubscriptions}}
        {{^hasSubscriptions}}<p class="card empty">None. The user has the plan of users without a subscription.</p>{{/hasSubscriptions}}
        </section>
        <section>
        <div class="heading"><h2>Store events</h2><p class="age">Newest first.</p></div>
        {{#hasEvents}}
        <ol class="card entries">
        {{#events}}
        <li><p class="when">{{#at}}{{>time}}{{/at}}</p><div><p><strong>{{type}}</strong> <span class="state {{outcomeState}}">{{outcome}}</span> <span class="muted">{{source}}</span></p>{{#problem}}<p class="mistake">{{problem}}</p>{{/problem}}{{#detail}}<p class="note">{{detail}}</p>{{/detail}}</div></li>
        {{/events}}
        </ol>
        {{/hasEvents}}
        {{^hasEvents}}<p class="card empty">No store has sent an event about this user.</p>{{/hasEvents}}
        </section>
        <section>
        <div class="heading"><h2>Changes</h2><p class="age">Newest first: everything but messages, who did it, and why.</p></div>
        {{#hasChanges}}
        <ol class="card entries">
        {{#changes}}
        <li><p class="when">{{#at}}{{>time}}{{/at}}</p><div><p><strong>{{what}}</strong>{{#actor}} by <strong>{{actor}}</strong>{{/actor}}{{#reason}}: {{reason}}{{/reason}}</p>{{#changed}}<p>{{changed}}</p>{{/changed}}{{#unchanged}}<p class="note">{{unchanged}}</p>{{/unchanged}}</div></li>
        {{/changes}}
        </ol>
        {{#isCut}}<p class="note">These are the newest 100. <code>headroom audit {{user}}</code> has all of them.</p>{{/isCut}}
        {{/hasChanges}}
        {{^hasChanges}}<p class="card empty">Nothing was changed for this user, by hand or by a store.</p>{{/hasChanges}}
        </section>

        """
}
