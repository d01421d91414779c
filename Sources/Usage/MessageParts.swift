/// The name of a model, as requests and limits have it.
///
/// A string literal is a name. One of another form stops the program.
public struct ModelName: Sendable, Hashable {
    public static let lengthBytes = 1...64
    /// The form of a name, for error messages.
    public static let form = "1 to 64 letters, digits and . _ : / @ -"

    public let text: String

    /// Returns nil unless the text has 1 to 64 bytes of letters, digits and `._:/@-`.
    public init?(_ text: String) {
        guard ModelName.lengthBytes.contains(text.utf8.count), text.utf8.allSatisfy(ModelName.mayContain) else {
            return nil
        }
        self.text = text
    }

    /// The name of a limit for models: a model, or the beginning of models' names and an asterisk. That stands for any
    /// model with that beginning. No other limit matches it better, so that it finds the limit of that name.
    public static func ofLimit(named name: String) -> ModelName? {
        let beginning = name.hasSuffix("*") ? String(name.dropLast()) : name
        return name == "*" || ModelName(beginning) != nil ? ModelName(validated: name) : nil
    }

    private init(validated text: String) {
        self.text = text
    }

    private static func mayContain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"),
            UInt8(ascii: "/"), UInt8(ascii: "@"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}

extension ModelName: ExpressibleByStringLiteral {
    public init(stringLiteral text: String) {
        guard let name = ModelName(text) else { preconditionFailure("a model's name must be \(ModelName.form)") }
        self = name
    }
}

/// A part of a user's messages that a plan may limit.
public enum MessagePart: Sendable, Hashable {
    case model(ModelName)
    case member(UserID)

    public var kind: PlanLimit.Kind {
        switch self {
        case .model: .model
        case .member: .member
        }
    }

    /// The name as requests have it.
    public var name: String {
        switch self {
        case .model(let model): model.text
        case .member(let member): "\(member)"
        }
    }
}

/// The parts to which a request's messages belong: the model that answers them, and the member of the account who
/// sends them. A request names one of them at least.
public struct MessageParts: Sendable, Hashable {
    /// The model comes first.
    public let all: [MessagePart]

    public init?(model: ModelName? = nil, member: UserID? = nil) {
        switch (model, member) {
        case (let model?, let member?): all = [.model(model), .member(member)]
        case (let model?, nil): all = [.model(model)]
        case (nil, let member?): all = [.member(member)]
        case (nil, nil): return nil
        }
    }

    public var model: ModelName? {
        all.lazy.compactMap { if case .model(let model) = $0 { model } else { nil } }.first
    }
    public var member: UserID? {
        all.lazy.compactMap { if case .member(let member) = $0 { member } else { nil } }.first
    }
}
