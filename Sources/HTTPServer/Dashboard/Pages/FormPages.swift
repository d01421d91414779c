/// Where a user's id is typed in.
struct FindPage {
    var frame: Frame
    var typed: String
    var mistake: String?

    static let template = """
        {{<frame}}{{$main}}
        <div class="title"><h1>Find a user</h1></div>
        <form class="card narrow" method="get" action="/dashboard/users">
        <div class="field"><label for="user">The user’s UUID</label>
        <p class="note" id="user-hint">As your product knows the user: 8-4-4-4-12 hexadecimal digits.</p>
        {{#mistake}}<p class="mistake" id="user-mistake">{{mistake}}</p>{{/mistake}}
        <input id="user" class="id" name="user" required autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="64" value="{{typed}}" placeholder="7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11" aria-describedby="{{#mistake}}user-mistake {{/mistake}}user-hint"{{#mistake}} aria-invalid="true" autofocus{{/mistake}}></div>
        <button type="submit" class="primary">Show this user</button>
        </form>
        {{/main}}{{/frame}}

        """
}

/// Where a token is brought.
struct SignInPage {
    var frame: Frame
    var mistake: String?
    var notices: [Notice]
    /// Where to go on afterwards; a path of ours.
    var destination: String
    /// The browser came from another site, and kept the cookie of a session, if there is one, to itself.
    var mayBeSignedIn: Bool

    static let template = """
        {{<frame}}{{$main}}
        <div class="title"><h1>Sign in</h1></div>
        {{#notices}}{{>notice}}{{/notices}}
        <form class="card narrow" method="post" action="/dashboard/sign-in">
        <div class="field"><label for="token">Token</label>
        <p class="note" id="token-hint">One with the scope <code>dashboard</code> to look, or <code>operator</code> to reset and grant as well. <code>headroom token create</code> makes one.</p>
        {{#mistake}}<p class="mistake" id="token-mistake">{{mistake}}</p>{{/mistake}}
        <input id="token" class="id" name="token" type="password" required autocomplete="current-password" autocapitalize="none" spellcheck="false" maxlength="256" aria-describedby="{{#mistake}}token-mistake {{/mistake}}token-hint"{{#mistake}} aria-invalid="true" autofocus{{/mistake}}></div>
        <button type="submit" class="primary">Sign in</button>
        <input type="hidden" name="seal" value="{{frame.formSeal}}">
        <input type="hidden" name="to" value="{{destination}}">
        <p class="note">You stay signed in for 8 hours on this browser, or until the token ends.</p>
        </form>
        {{#mayBeSignedIn}}<p class="note">Signed in already? <a href="{{destination}}">Go on to the page.</a></p>{{/mayBeSignedIn}}
        {{/main}}{{/frame}}

        """
}

/// Asks once more, before anything is changed.
struct ConfirmPage {
    var frame: Frame
    var user: String
    var action: String
    var heading: String
    var question: String
    /// Why the user cannot send all the same.
    var caveat: Notice?
    var consequence: String
    var button: String
    /// Of the stylesheet's: what takes something away looks unlike what gives.
    var buttonLook: String
    var reason: String
    var messages: String?
    /// The grant is made once under it, however often the form is sent.
    var key: String
    var snapshot: String?

    static let template = """
        {{<frame}}{{$main}}
        <div class="title"><h1>{{heading}}</h1></div>
        <form class="card narrow" method="post" action="/dashboard/users/{{user}}/{{action}}">
        <p class="question">{{question}}</p>
        {{#caveat}}{{>notice}}{{/caveat}}
        <dl class="facts">
        <div><dt>User</dt><dd class="id">{{user}}</dd></div>
        {{#snapshot}}<div><dt>Stands at</dt><dd>{{snapshot}}</dd></div>{{/snapshot}}
        <div><dt>Reason</dt><dd>{{reason}}</dd></div>
        </dl>
        <p class="note">{{consequence}}</p>
        <input type="hidden" name="seal" value="{{frame.formSeal}}">
        <input type="hidden" name="key" value="{{key}}">
        <input type="hidden" name="reason" value="{{reason}}">
        {{#messages}}<input type="hidden" name="messages" value="{{messages}}">{{/messages}}
        <div class="buttons"><button type="submit" name="confirmed" value="yes" class="{{buttonLook}}">{{button}}</button> <a class="button" href="/dashboard/users/{{user}}">No, go back</a></div>
        </form>
        {{/main}}{{/frame}}

        """
}

/// Something is in the way, and what to do.
struct ProblemPage {
    var frame: Frame
    var heading: String
    var text: String
    var advice: String
    var link: String?
    var linkText: String?

    static let template = """
        {{<frame}}{{$main}}
        <div class="title"><h1>{{heading}}</h1></div>
        <div class="card narrow">
        <p class="question">{{text}}</p>
        <p class="note">{{advice}}</p>
        {{#link}}<p><a class="button" href="{{link}}">{{linkText}}</a></p>{{/link}}
        </div>
        {{/main}}{{/frame}}

        """
}
