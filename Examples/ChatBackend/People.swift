import ArgumentParser
import Foundation
import HeadroomClient

/// A user offered on the first page. A product has a sign-in instead.
struct Person: Decodable, Sendable {
    let user: UserID
    let name: String
    let about: String

    private enum CodingKeys: CodingKey {
        case user, name, about
    }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        guard let user = UserID(try fields.decode(String.self, forKey: .user)) else {
            throw DecodingError.dataCorruptedError(forKey: .user, in: fields, debugDescription: "not a UUID")
        }
        self.user = user
        name = try fields.decode(String.self, forKey: .name)
        about = try fields.decode(String.self, forKey: .about)
    }

    static func read(file: String) throws -> [Person] {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw ValidationError("--people names a file that cannot be read")
        }
        do {
            return try JSONDecoder().decode([Person].self, from: data)
        } catch {
            throw ValidationError("--people must be a JSON array of {\"user\": a UUID, \"name\", \"about\"}")
        }
    }

    /// The first page. Each time it offers another new user.
    static func page(of people: [Person]) -> String {
        let links = people.map { link($0.user, $0.name, $0.about) }
        let newUser = UserID(high: .random(in: 0...(.max)), low: .random(in: 0...(.max)))
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
            \(links.joined(separator: "\n"))
            \(link(newUser, "A new user", "has never sent a message"))
            </ul>
            </main>
            </body>
            </html>
            """
    }

    private static func link(_ user: UserID, _ name: String, _ about: String) -> String {
        "<li><a href=\"/chat/\(user)\"><strong>\(escape(name))</strong> <span>\(escape(about))</span></a></li>"
    }

    private static func escape(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
    }
}
