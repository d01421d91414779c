import Engine
import HeadroomServer

/// What every page has around it.
struct Frame {
    /// Of the document, without the product's name.
    var title: String
    var version = HeadroomVersion.current
    /// Seals the forms of this page.
    var formSeal = ""
    /// The name of the token that somebody signed in with.
    var signedInAs: String?
    var isOverview = false
    var isUsers = false
    /// False where nobody may look at anything yet.
    var hasNavigation = true

    static let template = """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>{{frame.title}} · Headroom</title>
        <link rel="stylesheet" href="/dashboard/style.css">
        <link rel="icon" href="/dashboard/icon.svg" type="image/svg+xml">
        <script src="/dashboard/script.js" defer></script>
        </head>
        <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header class="top">
        <div class="page">
        <a class="brand" href="/dashboard"><svg class="logo" viewBox="0 0 24 24" aria-hidden="true"><path class="shell" d="M12 2a10 10 0 0 1 10 10v8a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2v-8A10 10 0 0 1 12 2Z"/><path class="level" d="M5 14h14v5H5Z"/></svg><span>Headroom</span></a>
        {{#frame.hasNavigation}}
        <nav aria-label="Pages">
        <ul>
        <li><a href="/dashboard"{{#frame.isOverview}} aria-current="page"{{/frame.isOverview}}>Overview</a></li>
        <li><a href="/dashboard/users"{{#frame.isUsers}} aria-current="page"{{/frame.isUsers}}>Find a user</a></li>
        </ul>
        </nav>
        {{/frame.hasNavigation}}
        {{#frame.signedInAs}}
        <form class="sign-out" method="post" action="/dashboard/sign-out">
        <input type="hidden" name="seal" value="{{frame.formSeal}}">
        <span class="who">Signed in as <strong>{{frame.signedInAs}}</strong></span>
        <button class="quiet" type="submit">Sign out</button>
        </form>
        {{/frame.signedInAs}}
        </div>
        </header>
        <main id="main" class="page" tabindex="-1">
        {{$main}}{{/main}}
        </main>
        <footer class="page">
        <p>All times and days are in UTC. Headroom {{frame.version}}</p>
        </footer>
        </body>
        </html>

        """
}

/// Something to tell above a page's content.
struct Notice {
    enum Kind: String {
        case good, warning, bad
    }

    var kind: String
    var title: String
    var text: String
    /// Read out at once: it is what became of what somebody just did.
    var isOutcome: Bool

    init(_ kind: Kind, _ title: String, _ text: String, isOutcome: Bool = false) {
        self.kind = kind.rawValue
        self.title = title
        self.text = text
        self.isOutcome = isOutcome
    }

    static let template = """
        <div class="notice {{kind}}"{{#isOutcome}} role="status"{{/isOutcome}}><p><strong>{{title}}</strong> {{text}}</p></div>

        """
}

/// An instant for `{{>time}}`.
enum TimeElement {
    static let template = """
        <time datetime="{{machine}}">{{person}}</time>
        """
}
