import ArgumentParser
import Foundation
import HeadroomClient

/// Somebody who can be chosen on the first page. In a product, signing in would tell who it is.
struct Person: Sendable {
    let user: UserID
    let name: String
    let about: String

    private struct Entry: Decodable {
        var user: String
        var name: String
        var about: String?
    }

    private static let maximum = 1_000

    /// - Throws: `ValidationError`, which says what is wrong with the file.
    static func read(file: String) throws -> [Person] {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw ValidationError("--people names a file that cannot be read")
        }
        guard let entries = try? JSONDecoder().decode([Entry].self, from: data), entries.count <= maximum else {
            throw ValidationError(
                "--people must be a JSON array of {\"user\", \"name\", \"about\"}, at most \(maximum)"
            )
        }
        var seen: Set<UserID> = []
        return try entries.map { entry in
            guard let user = UserID(entry.user), !entry.name.isEmpty, seen.insert(user).inserted else {
                throw ValidationError("--people must have a name, and a UUID as user, once each")
            }
            return Person(user: user, name: entry.name, about: entry.about ?? "")
        }
    }
}
