import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// A problem for a person who opened an address by hand.
struct ProblemPage {
    let problem: Problem

    var response: Response {
        var headers = problem.headers
        headers[.contentType] = "text/html; charset=utf-8"
        headers[.cacheControl] = "no-store"
        let body = ResponseBody(byteBuffer: ByteBuffer(string: text))
        return Response(status: problem.status, headers: headers, body: body)
    }

    private var heading: String {
        switch problem.status {
        case .notFound: "I can’t find that page"
        case .misdirectedRequest: "Not under this name"
        case .serviceUnavailable: "Not at the moment"
        default: "That did not work"
        }
    }

    private var text: String {
        """
        \(PersonPage.head(title: heading))
        <body class="people">
        <main>
        <h1>\(PersonPage.escaped(heading))</h1>
        <p class="lost">\(PersonPage.escaped(sentence))</p>
        <a href="/"><strong>Choose who is chatting</strong></a>
        </main>
        </body>
        </html>

        """
    }

    /// With a capital and a full stop, which the API's messages have not.
    private var sentence: String {
        problem.message.prefix(1).uppercased() + problem.message.dropFirst() + "."
    }
}

/// What the pages have in common that are not the chat's own.
enum PersonPage {
    static func head(title: String) -> String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
        <title>\(escaped(title))</title>
        <link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
        <link rel="stylesheet" href="/assets/style.css">
        </head>
        """
    }

    static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }
}
