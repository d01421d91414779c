/// A limit for a part of a plan's messages: a row of `headroom.plan_limits`.
///
/// It is a class, so that the answers of a batch share one instance.
public final class PlanLimit: Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        /// The messages with a model, or with each of the models whose names begin alike.
        case model
        /// The messages of each member of an account.
        case member
    }

    public let kind: Kind
    /// The model, or the beginning of models' names and an asterisk; an asterisk for members.
    public let name: String
    /// The name that users read; nil is the name of the model.
    public let label: String?
    /// Messages per period of the plan; nil is unlimited.
    public let allowance: Int?
    public let window: Plan.Window?
    /// How many messages of the user's and the member's allowances a message with this model takes.
    public let weight: Int
    /// The model to offer when this one is used up.
    public let fallback: ModelName?
    /// The beginning of the names of models that have this limit; nil if it is that of one model.
    private let beginning: String?

    public init(
        _ kind: Kind,
        _ name: String,
        label: String? = nil,
        allowance: Int? = nil,
        window: Plan.Window? = nil,
        weight: Int = 1,
        fallback: ModelName? = nil
    ) {
        self.kind = kind
        self.name = name
        self.label = label
        self.allowance = allowance
        self.window = window
        self.weight = weight
        self.fallback = fallback
        beginning = name.hasSuffix("*") ? String(name.dropLast()) : nil
    }

    /// How well the limit suits a model: the longest match counts. It is nil if it is not that model's.
    fileprivate func match(_ model: ModelName) -> Int? {
        guard kind == .model else { return nil }
        guard let beginning else { return name == model.text ? Int.max : nil }
        return model.text.utf8.starts(with: beginning.utf8) ? beginning.utf8.count : nil
    }
}

extension PlanLimit: Equatable {
    public static func == (lhs: PlanLimit, rhs: PlanLimit) -> Bool {
        lhs === rhs
            || lhs.kind == rhs.kind && lhs.name == rhs.name && lhs.label == rhs.label && lhs.allowance == rhs.allowance
                && lhs.window == rhs.window && lhs.weight == rhs.weight && lhs.fallback == rhs.fallback
    }
}

extension Plan {
    /// The plan's limit for a part of its messages; nil if it has none.
    public func limit(of part: MessagePart) -> PlanLimit? {
        switch part {
        case .model(let model):
            var (best, longest) = (PlanLimit?.none, -1)
            for limit in limits {
                if let match = limit.match(model), match > longest { (best, longest) = (limit, match) }
            }
            return best
        case .member: return limits.first { $0.kind == .member }
        }
    }
}
