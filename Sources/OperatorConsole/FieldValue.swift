import Foundation

/// A value of a reply as JSON has it: a number as a number, and what is unlimited as null, as in the database.
public enum FieldValue: Sendable, Equatable, Encodable {
    case integer(Int)
    case decimal(Double)
    case text(String)
    case null

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .integer(let number): try container.encode(number)
        case .decimal(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .null: try container.encodeNil()
        }
    }

    /// As a number where it is one.
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
    /// One object on one line, names in the order of the alphabet. What a terminal could take for a command is escaped,
    /// which JSON means to be the same.
    public func jsonLine() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var line = ""
        for scalar in String(decoding: try encoder.encode(self), as: UTF8.self).unicodeScalars {
            if movesTerminal(scalar) {
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
