import Foundation

/// A value as JSON has it: a number as a number; no value, or an unlimited one, as null, as in the database.
public enum FieldValue: Sendable, Equatable, Encodable {
    case integer(Int)
    case decimal(Double)
    case text(String)
    case list([String])
    case null

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .integer(let number): try container.encode(number)
        case .decimal(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .list(let texts): try container.encode(texts)
        case .null: try container.encodeNil()
        }
    }

    /// A text, or null for nil.
    init(_ text: String?) {
        self = text.map { .text($0) } ?? .null
    }

    /// A number if the text is one, otherwise the text.
    init(number text: String) {
        if let number = Int(text) {
            self = .integer(number)
        } else if let number = Double(text) {
            self = .decimal(number)
        } else {
            self = .text(text)
        }
    }
}

extension Encodable {
    /// One object on one line, names in alphabetical order. Characters that a terminal could take for a command are
    /// escaped, which means the same in JSON.
    public func jsonLine() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var line = ""
        for scalar in String(decoding: try encoder.encode(self), as: UTF8.self).unicodeScalars {
            if controlsTerminal(scalar) {
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    line += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            } else {
                line.unicodeScalars.append(scalar)
            }
        }
        return line
    }
}
