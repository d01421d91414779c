import JSON
import Usage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The parts of a key's messages and what these have taken from balances, as the column `parts` of
/// `headroom.message_keys` has them in JSON.
struct KeyParts: Codable, Equatable {
    /// How many messages of the user's and the member's allowances each message took.
    var weight: Int
    var model: KeyPart?
    var member: KeyPart?
    /// What the messages have taken from balances, by these balances' keys; nil is nothing.
    var charges: [String: Int]?
    /// What the first answer, and that to COMMIT, showed of balances.
    var first: KeyBalances?
    var commit: KeyBalances?

    /// Those of a request that names none.
    init() {
        weight = 1
    }

    /// - Throws: if the text was not written by this.
    init(_ text: String) throws {
        self = try JSONDecoder().decode(KeyParts.self, from: Data(text.utf8))
    }

    /// - Parameters:
    ///   - snapshot: with the parts, after the messages were counted or held.
    ///   - charges: what they have taken from balances.
    ///   - generation: the generation of a counter.
    init?(_ snapshot: UsageSnapshot, charges: [String: Int] = [:], generation: (PartID) -> Int64?) {
        first = KeyBalances(snapshot.balances)
        guard !snapshot.parts.isEmpty || first != nil || !charges.isEmpty else { return nil }
        weight = snapshot.weight
        self.charges = charges.isEmpty ? nil : charges
        for usage in snapshot.parts {
            let id = usage.limit.map { PartID(usage.part, $0) }
            self[usage.part.kind] = KeyPart(
                name: usage.part.name,
                counter: id?.name,
                generation: id.flatMap(generation),
                window: usage.limit?.window == nil ? nil : usage.counter.windowOpenedAt?.microsecondsSince1970,
                first: usage.numbers
            )
        }
    }

    /// The text of a key whose messages `headroom.count_parts` counts, which adds what it knows of the counters. It is
    /// no JSONEncoder's, which would take longer than the rest of a message; names have no letter that JSON escapes.
    static func textBeforeCounting(_ parts: MessageParts, _ plan: Plan) -> String {
        var weight = 1
        var fields = ""
        for part in parts.all {
            let limit = plan.limit(of: part)
            if let limit, part.kind == .model { weight = limit.weight }
            let counter = limit.map { ",\"counter\":\"\(PartID(part, $0).name)\"" } ?? ",\"first\":{}"
            fields += ",\"\(part.kind.rawValue)\":{\"name\":\"\(part.name)\"\(counter)}"
        }
        return "{\"weight\":\(weight)\(fields)}"
    }

    subscript(kind: PlanLimit.Kind) -> KeyPart? {
        get {
            switch kind {
            case .model: model
            case .member: member
            }
        }
        set {
            switch kind {
            case .model: model = newValue
            case .member: member = newValue
            }
        }
    }

    /// The parts as a request names them; nil if the member was forgotten and there is no model.
    var named: MessageParts? {
        MessageParts(model: model.flatMap { ModelName($0.name) }, member: member.flatMap { UserID($0.name) })
    }

    /// The counters in which the messages are counted or held, and the part of each.
    var counted: [(id: PartID, part: KeyPart)] {
        PlanLimit.Kind.allCases.compactMap { kind in
            guard let part = self[kind], let counter = part.counter, let id = PartID(kind: kind, name: counter) else {
                return nil
            }
            return (id, part)
        }
    }

    /// How many of the user's `messages` count in a part: a model's own are not multiplied.
    func messages(_ messages: Int, of kind: PlanLimit.Kind) -> Int { kind == .model ? messages / weight : messages }
}

struct KeyPart: Codable, Equatable {
    /// The numbers of an answer.
    struct Numbers: Codable, Equatable {
        var used, held: Int?
        var limit: Int?
        var windowUsed, windowHeld, windowLimit: Int?

        enum CodingKeys: String, CodingKey {
            case used, held, limit
            case windowUsed = "window_used"
            case windowHeld = "window_held"
            case windowLimit = "window_limit"
        }
    }

    /// The model or the member as the request named it.
    var name: String
    /// The name of the counter; nil if the plan had no limit for the part.
    var counter: String?
    /// The generation of the counter when it counted the messages.
    var generation: Int64?
    /// When the window opened in which the messages were counted or held, in microseconds since 1970.
    var window: Int64?
    /// The numbers of the first answer, and of the answer to COMMIT.
    var first: Numbers?
    var commit: Numbers?

    /// The counter after the first answer.
    ///
    /// - Parameter present: the counter now, which has the end of a window that is still open.
    func counter(_ limit: PlanLimit, _ present: PartCounter) -> PartCounter {
        var counter = present
        (counter.used, counter.held) = (first?.used ?? 0, first?.held ?? 0)
        (counter.windowUsed, counter.windowHeld) = (first?.windowUsed ?? 0, first?.windowHeld ?? 0)
        let openedAt = window.map { Instant(microsecondsSince1970: $0) }
        guard openedAt != present.windowOpenedAt else { return counter }
        counter.windowOpenedAt = openedAt
        counter.windowEndsAt = limit.window.flatMap { openedAt?.advanced(bySeconds: Int64($0.seconds)) }
        return counter
    }
}

extension PartUsage {
    var numbers: KeyPart.Numbers {
        guard let limit else { return KeyPart.Numbers() }
        return KeyPart.Numbers(
            used: counter.used,
            held: counter.held,
            limit: limit.allowance,
            windowUsed: limit.window == nil ? nil : counter.windowUsed,
            windowHeld: limit.window == nil ? nil : counter.windowHeld,
            windowLimit: limit.window?.messages
        )
    }

    /// The usage as an answer of a key showed it.
    ///
    /// - Parameters:
    ///   - present: the usage now, whose label and window an answer has in common with the first one.
    ///   - isOpen: whether the window of that time is still open.
    init(_ numbers: KeyPart.Numbers, _ present: PartUsage, isOpen: Bool) {
        guard let used = numbers.used else {
            self.init(present.part, limit: nil)
            return
        }
        let limit = PlanLimit(
            present.part.kind,
            present.limit?.name ?? present.part.name,
            label: present.limit?.label,
            allowance: numbers.limit,
            window: numbers.windowLimit.map {
                Plan.Window(messages: $0, seconds: present.limit?.window?.seconds ?? 60)
            },
            weight: present.limit?.weight ?? 1
        )
        var counter = PartCounter()
        (counter.used, counter.held) = (used, numbers.held ?? 0)
        (counter.windowUsed, counter.windowHeld) = (numbers.windowUsed ?? 0, numbers.windowHeld ?? 0)
        if isOpen {
            (counter.windowOpenedAt, counter.windowEndsAt) = (
                present.counter.windowOpenedAt, present.counter.windowEndsAt
            )
        }
        self.init(present.part, limit: limit, counter: counter)
    }
}
