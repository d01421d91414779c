import LineProtocol
import Usage

/// What an operator asks of a page about a user, as a form sends it.
struct ActionForm: Equatable, Sendable {
    enum Action: Equatable, Sendable {
        case grant(messages: Int)
        case reset

        /// In the address that the form is sent to.
        var name: String {
            switch self {
            case .grant: "grant"
            case .reset: "reset"
            }
        }
    }

    var action: Action
    /// For the audit log; 1 to 1,024 bytes.
    var reason: String

    static let messagesRange = 1...1_000_000
    static let reasonBytesMaximum = 1_024

    /// What is wrong with a field, and what to do.
    struct Mistake: Error, Equatable {
        var field: String
        var message: String
    }

    /// - Parameters:
    ///   - messages: as it was typed; spaces around it, and thousands apart, are taken.
    static func read(action: String, messages: String?, reason: String?) throws(Mistake) -> ActionForm {
        let reason = trimmed(reason ?? "")
        guard !reason.isEmpty else {
            throw Mistake(field: "reason", message: "Say why, for the audit log: a ticket number will do.")
        }
        guard reason.utf8.count <= reasonBytesMaximum else {
            throw Mistake(field: "reason", message: "That is too long; 1,024 bytes are the most.")
        }
        guard reason.unicodeScalars.allSatisfy({ !isUnseen($0) }) else {
            throw Mistake(field: "reason", message: "Leave line breaks, control and format characters out.")
        }
        switch action {
        case "reset":
            return ActionForm(action: .reset, reason: reason)
        case "grant":
            let digits = trimmed(messages ?? "").filter { $0 != "," }
            guard !digits.isEmpty, digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
                let number = Int(digits), messagesRange.contains(number)
            else {
                throw Mistake(field: "messages", message: "Say how many messages, from 1 to 1,000,000.")
            }
            return ActionForm(action: .grant(messages: number), reason: reason)
        default:
            throw Mistake(field: "action", message: "There is no such action.")
        }
    }

    /// Control characters, and those of format: one that turns the direction of writing makes a record read as another.
    private static func isUnseen(_ scalar: Unicode.Scalar) -> Bool {
        [.control, .format].contains(scalar.properties.generalCategory)
    }

    /// What is typed again into a form to be mended. By scalars: one character may hold any number of them.
    static func cut(_ text: String, to scalars: Int) -> String {
        String(text.unicodeScalars.prefix(scalars))
    }

    /// Without spaces around it: what is pasted has some.
    static func trimmed(_ text: String) -> String {
        let front = text.drop { $0 == " " || $0 == "\t" }
        return String(front.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
