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
            \(PersonPage.head(title: "Who is chatting?"))
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
        let (name, about) = (PersonPage.escaped(name), PersonPage.escaped(about))
        return "<li><a href=\"/chat/\(user)\"><strong>\(name)</strong> <span>\(about)</span></a></li>"
    }
}
