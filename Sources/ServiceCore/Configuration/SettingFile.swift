import Foundation
import LineProtocol

/// Reads a file that a setting names.
package enum SettingFile {
    /// The file cannot be used. The description never quotes its contents, which may be secret.
    package struct Unusable: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) {
            self.description = description
        }
    }

    /// The size limit of a file: far more than any secret or certificate needs.
    private static let bytesMaximum = 65_536

    /// - Returns: the secrets of the setting itself, then those of its file, one a line.
    package static func texts(
        _ secrets: WebhookConfiguration.Secrets,
        setting: some SettingDefinition
    ) throws(Unusable) -> [String] {
        var texts = secrets.values.map(\.text)
        guard let path = secrets.file else { return texts }
        guard let text = String(validating: try bytes(path, setting: setting), as: UTF8.self) else {
            throw Unusable(description: "\(path) cannot be \(setting.name): it is not UTF-8")
        }
        let lines = Secret.split(text.replacing("\r\n", with: "\n"), at: "\n")
        guard !lines.isEmpty else { throw Unusable(description: "\(path) cannot be \(setting.name): it is empty") }
        texts += lines.map(\.text)
        return texts
    }

    package static func bytes(_ path: String, setting: some SettingDefinition) throws(Unusable) -> [UInt8] {
        do {
            guard let file = FileHandle(forReadingAtPath: path) else {
                throw Unusable(description: "\(path) cannot be read; \(setting.name) names it")
            }
            defer { try? file.close() }
            let data = try file.read(upToCount: bytesMaximum + 1) ?? Data()
            guard data.count <= bytesMaximum else {
                throw Unusable(
                    description: "\(path) cannot be \(setting.name): it has more than \(bytesMaximum) bytes"
                )
            }
            return Array(data)
        } catch let error as Unusable {
            throw error
        } catch {
            throw Unusable(description: "\(path) cannot be read; \(setting.name) names it")
        }
    }
}
