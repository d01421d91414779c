import Foundation
import LineProtocol

/// A file that a setting names.
package struct SettingFile: Sendable {
    /// The file cannot be used. The description never quotes its contents, which may be secret.
    package struct Unusable: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) {
            self.description = description
        }
    }

    /// The size limit of a file: far more than any secret or certificate needs.
    private static let bytesMaximum = 65_536

    let path: String
    /// The setting's name.
    let setting: String

    package func unusable(because reason: String) -> Unusable {
        Unusable(description: "\(path) cannot be \(setting): \(reason)")
    }

    package func bytes() throws(Unusable) -> [UInt8] {
        let file = FileHandle(forReadingAtPath: path)
        defer { try? file?.close() }
        guard let file, let data = try? file.read(upToCount: SettingFile.bytesMaximum + 1) ?? Data() else {
            throw Unusable(description: "\(path) cannot be read; \(setting) names it")
        }
        guard data.count <= SettingFile.bytesMaximum else {
            throw unusable(because: "it has more than \(SettingFile.bytesMaximum) bytes")
        }
        return Array(data)
    }
}

/// Secrets in the setting itself, and a file with more of them.
package struct Secrets: Sendable {
    let values: [Secret]
    let file: SettingFile?

    package var isEmpty: Bool { values.isEmpty && file == nil }

    /// - Returns: the secrets of the setting itself, then those of its file, one a line.
    package func texts() throws(SettingFile.Unusable) -> [String] {
        guard let file else { return values.map(\.text) }
        guard let text = String(validating: try file.bytes(), as: UTF8.self) else {
            throw file.unusable(because: "it is not UTF-8")
        }
        let lines = Secret.split(text.replacing("\r\n", with: "\n"), at: "\n")
        guard !lines.isEmpty else { throw file.unusable(because: "it is empty") }
        return (values + lines).map(\.text)
    }
}

extension Secret {
    /// The parts between separators, without the space around them; empty ones are left out.
    static func split(_ text: String, at separator: Character) -> [Secret] {
        text.split(separator: separator).compactMap { part in
            let trimmed = part.drop { $0.isWhitespace }
            guard let end = trimmed.lastIndex(where: { !$0.isWhitespace }) else { return nil }
            return Secret(String(trimmed[...end]))
        }
    }
}
