import LineProtocol
import Usage

/// An operator's action on a user, decoded from a form.
struct ActionForm: Equatable, Sendable {
    enum Action: Equatable, Sendable {
        case grant(messages: Int)
        /// Nil resets all counts of the period.
        case reset(MessageParts?)
        /// Closes the open window: that of all messages, or that of a part.
        case resetWindow(MessageParts?)
        case setPlan(PlanFields)
        case forget

        /// The last component of the form's path.
        var name: String {
            switch self {
            case .grant: "grant"
            case .reset: "reset"
            case .resetWindow: "window"
            case .setPlan: "plan"
            case .forget: "forget"
            }
        }
    }

    static let actionNames = ["grant", "reset", "window", "plan", "forget"]

    var action: Action
    /// For the audit log; 1 to 1,024 bytes.
    var reason: String

    /// The parts that the action is about; nil for one about the user.
    var parts: MessageParts? {
        switch action {
        case .reset(let parts), .resetWindow(let parts): parts
        case .grant, .setPlan, .forget: nil
        }
    }

    static let messagesRange = 1...1_000_000
    static let reasonBytesMaximum = 1_024
    /// Of any other field that is shown again.
    private static let inputScalarsMaximum = 64

    /// A field whose value was rejected, and how to correct it.
    struct InvalidField: Error, Equatable {
        var field: String
        var message: String
    }

    /// - Parameters:
    ///   - fields: `reason`; for a grant `messages`, in which commas between thousands are ignored; for a reset and a
    ///     window `part`, which may be absent; for a plan those of `PlanFields`. Surrounding spaces are ignored.
    ///   - plans: all plans; nil if they cannot be read, and then the database checks the plan.
    static func read(
        action: String,
        _ fields: [String: String],
        plans: [Plan]? = nil
    ) throws(InvalidField) -> ActionForm {
        let reason = try self.reason(fields)
        switch action {
        case "reset": return ActionForm(action: .reset(try parts(fields)), reason: reason)
        case "window": return ActionForm(action: .resetWindow(try parts(fields)), reason: reason)
        case "forget": return ActionForm(action: .forget, reason: reason)
        case "plan": return ActionForm(action: .setPlan(try PlanFields(fields, plans: plans)), reason: reason)
        case "grant":
            let digits = trimmed(fields["messages"] ?? "").filter { $0 != "," }
            guard !digits.isEmpty, digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
                let number = Int(digits), messagesRange.contains(number)
            else {
                throw InvalidField(field: "messages", message: "Enter a number of messages from 1 to 1,000,000.")
            }
            return ActionForm(action: .grant(messages: number), reason: reason)
        default:
            throw InvalidField(field: "action", message: "There is no such action.")
        }
    }

    private static func parts(_ fields: [String: String]) throws(InvalidField) -> MessageParts? {
        guard let value = fields["part"], !value.isEmpty else { return nil }
        guard let parts = MessageParts(formValue: value) else {
            throw InvalidField(field: "reason", message: "There is no such model or member.")
        }
        return parts
    }

    /// The reason for the audit log, which every action needs.
    static func reason(_ fields: [String: String]) throws(InvalidField) -> String {
        let reason = trimmed(fields["reason"] ?? "")
        guard !reason.isEmpty else {
            throw InvalidField(field: "reason", message: "Enter a reason for the audit log, such as a ticket number.")
        }
        guard reason.utf8.count <= reasonBytesMaximum else {
            throw InvalidField(field: "reason", message: "Too long: enter at most 1,024 bytes.")
        }
        guard reason.unicodeScalars.allSatisfy({ !isInvisible($0) }) else {
            throw InvalidField(
                field: "reason",
                message: "Remove line breaks, control characters and formatting characters."
            )
        }
        return reason
    }

    /// Control and formatting characters: one that reverses the writing direction makes a record look like another.
    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        [.control, .format].contains(scalar.properties.generalCategory)
    }

    /// A rejected value, to be shown again.
    static func draft(_ field: String, _ fields: [String: String]) -> String? {
        fields[field].map {
            truncated($0, toScalars: field == "reason" ? reasonBytesMaximum : inputScalarsMaximum)
        }
    }

    /// Limits rejected input that is shown again. By scalars, because one character can have any number of them.
    static func truncated(_ text: String, toScalars scalars: Int) -> String {
        String(text.unicodeScalars.prefix(scalars))
    }

    /// Without surrounding spaces, which pasted text often has.
    static func trimmed(_ text: String) -> String {
        let front = text.drop { $0 == " " || $0 == "\t" }
        return String(front.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}

extension MessageParts {
    /// The kind, a colon and the name of a model's limit, or the member's id.
    var formValue: String { all.map { "\($0.kind.rawValue):\($0.name)" }.joined() }

    init?(formValue: String) {
        let halves = formValue.split(separator: ":", maxSplits: 1).map(String.init)
        guard halves.count == 2, let kind = PlanLimit.Kind(rawValue: halves[0]) else { return nil }
        self.init(kind, named: halves[1])
    }

    /// The messages that a reported allowance counts.
    init?(_ kind: PlanLimit.Kind, named name: String) {
        switch kind {
        case .model: self.init(model: ModelName.ofLimit(named: name))
        case .member: self.init(member: UserID(name))
        }
    }
}
