import Foundation
import HeadroomClient

/// The first page: whose chat to open.
struct PeoplePage {
    let people: [Person]

    var asset: Asset { Asset(name: "people.html", data: Data(text.utf8)) }

    private var text: String {
        let links = people.map { PeoplePage.link($0.user, $0.name, $0.about) }
        let stranger = UserID(high: .random(in: 0...(.max)), low: .random(in: 0...(.max)))
        let newcomer = PeoplePage.link(stranger, "Somebody new", "has never sent a message")
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
            <title>Who is chatting?</title>
            <link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
            <link rel="stylesheet" href="/assets/style.css">
            </head>
            <body class="people">
            <main>
            <h1>Who is chatting?</h1>
            <ul>
            \((links + [newcomer]).joined(separator: "\n"))
            </ul>
            </main>
            </body>
            </html>

            """
    }

    private static func link(_ user: UserID, _ name: String, _ about: String) -> String {
        """
        <li><a href="/chat/\(user)"><strong>\(escaped(name))</strong> <span>\(escaped(about))</span></a></li>
        """
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }
}
