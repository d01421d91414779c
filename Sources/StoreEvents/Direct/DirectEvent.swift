import Billing
import JSON
import Usage

/// An event in Headroom's own format, for billing systems without an adapter: the body of `POST /v1/billing-events`.
///
/// It names plans directly, and users by their id. docs/billing-events.md describes the fields.
public enum DirectEvent {
    /// A direct event must not use the name of a store.
    private static let reservedSources = Set(Stores.all.map { $0.source.rawValue })
    /// The prefix of users in `headroom.customer_names`.
    private static let usersPrefix = "user"
    static let fields: Set<String> = [
        "source", "id", "at", "user", "transaction", "kind", "plan", "product", "next_plan", "next_product", "started",
        "expires", "grace_until", "anchor", "environment", "messages", "price", "currency", "from", "to",
    ]

    private static let transferFields: Set<String> = ["source", "id", "at", "kind", "from", "to", "environment"]

    /// - Parameter namespace: the namespace of users' names; nil where users are UUIDs only, as in stored payloads.
    /// - Throws: malformed, with the field and its rule.
    public static func parse(
        body: [UInt8],
        in namespace: UserNamespace? = nil
    ) throws(BillingError) -> BillingEvent {
        let value = withoutNames(try JSONValue(received: body), in: namespace)
        let object = try PayloadFields(value, path: "")
        if let unknown = object.members.keys.sorted().first(where: { !fields.contains($0) }) {
            throw .malformed(
                "an event has no field \(quoted(unknown)); its fields are \(fields.sorted().joined(separator: ", "))"
            )
        }
        let source = try object.required("source", PayloadFields.text)
        guard isSource(source) else {
            throw .malformed("source must be lower-case letters, digits and underscores, at most 32, a letter first")
        }
        guard source != usersPrefix else { throw .malformed("source must not be 'user'; choose another name") }
        guard !reservedSources.contains(source) else {
            throw .malformed("source is a store's name; its events come by its webhook, choose another name for yours")
        }
        let user = try object.text("user")
        if let user, !isUser(user) { throw .malformed(UserNamespace.rule(namespace)) }
        let effect = try effect(object)
        let environment = try object.text("environment")
        guard (environment?.unicodeScalars.count ?? 0) <= PayloadFields.wordLengthMaximum else {
            throw .malformed("environment must have at most \(PayloadFields.wordLengthMaximum) characters")
        }
        guard let at = try instant("at", object) else { throw .malformed("at is missing: when it happened") }
        return BillingEvent(
            source: BillingEvent.Source(rawValue: source),
            id: try object.required("id", PayloadFields.text),
            type: effect.kind.rawValue,
            at: at,
            environment: environment.map { BillingEvent.Environment(rawValue: $0) },
            identities: user.map { [CustomerIdentity.stored($0)] } ?? [],
            effects: [effect],
            payload: value
        )
    }

    /// The event with the UUIDs of users in place of their names, as it is stored.
    private static func withoutNames(_ event: JSONValue, in namespace: UserNamespace?) -> JSONValue {
        guard let namespace, case .object(var members) = event else { return event }
        func withoutName(_ value: JSONValue) -> JSONValue {
            guard case .string(let name) = value, !isUser(name), let user = UserID(name, in: namespace) else {
                return value
            }
            return .string(user.description)
        }
        for name in ["user", "from", "to"] {
            switch members[name] {
            case .array(let names)?: members[name] = .array(names.map(withoutName))
            case let value?: members[name] = withoutName(value)
            case nil: break
            }
        }
        return .object(members)
    }

    private static func effect(_ object: PayloadFields) throws(BillingError) -> BillingEffect {
        let kinds = BillingEffect.Kind.allCases.filter { ![.temporary, .merged, .linked].contains($0) }
        guard let kind = BillingEffect.Kind(rawValue: try object.required("kind", PayloadFields.word)),
            kinds.contains(kind)
        else { throw .malformed("kind must be one of \(kinds.map(\.rawValue).joined(separator: ", "))") }
        if kind == .transferred { return try transfer(object) }
        for name in ["from", "to"] where object.has(name) {
            throw .malformed("\(name) belongs to events of kind transferred")
        }
        var effect = BillingEffect(
            kind,
            transaction: try object.required("transaction", PayloadFields.text),
            product: try object.text("product"),
            nextProduct: try object.text("next_product"),
            started: try instant("started", object),
            expires: try instant("expires", object),
            graceUntil: try instant("grace_until", object)
        )
        effect.plan = try plan("plan", object)
        effect.nextPlan = try plan("next_plan", object)
        if let day = try object.integer("anchor") {
            guard (1...31).contains(day) else { throw .malformed("anchor must be a day of the month, 1 to 31") }
            effect.anchorDay = Int(day)
        }
        if let messages = try object.integer("messages") {
            guard (1...Int64(BillingEffect.messagesMaximum)).contains(messages) else {
                throw .malformed("messages must be 1 to \(BillingEffect.messagesMaximum)")
            }
            effect.messages = Int(messages)
        }
        if let price = try price(object) {
            guard kind == .purchased || kind == .renewed else {
                throw .malformed("price belongs to events of kinds purchased and renewed")
            }
            effect.sale = BillingEffect.Sale(price)
        }
        try check(effect)
        return effect
    }

    private static func price(_ object: PayloadFields) throws(BillingError) -> Price? {
        let currency = try object.text("currency")
        var units: Double?
        switch object.members["price"] {
        case nil, .null?:
            guard currency == nil else { throw .malformed("price is missing: currency belongs to a price") }
            return nil
        case .string(let text)?:
            units = text.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2E } ? Double(text) : nil
        default: units = try object.number("price")
        }
        guard let price = Price(units: units, currency: currency ?? "XXX") else {
            throw .malformed("price must be a number such as \"9.99\", and currency a code of ISO 4217 such as USD")
        }
        guard currency != nil else { throw .malformed("currency is missing: price needs it, for example USD") }
        return price
    }

    /// Checks that the fields fit the kind.
    private static func check(_ effect: BillingEffect) throws(BillingError) {
        switch effect.kind {
        case .purchased where effect.plan == nil && effect.product == nil:
            throw .malformed("plan is missing: which plan was bought, or product, if it is mapped to one")
        case .renewed where effect.expires == nil, .extended where effect.expires == nil:
            throw .malformed("expires is missing: a renewal and an extension say until when")
        case .granted where effect.messages == nil && effect.product == nil:
            throw .malformed("messages is missing: how many were bought, or product, if it is mapped to messages")
        default: break
        }
        if effect.graceUntil != nil, effect.kind != .gracePeriod {
            throw .malformed("grace_until has no meaning in an event of this kind; it belongs to grace_period")
        }
        if effect.nextPlan != nil || effect.nextProduct != nil, effect.kind != .productChanged {
            throw .malformed("next_plan and next_product belong to events of kind product_changed")
        }
        if effect.messages != nil, effect.kind != .granted {
            throw .malformed("messages belongs to events of kind granted")
        }
        if let started = effect.started, let expires = effect.expires, expires < started {
            throw .malformed("expires is before started")
        }
    }

    private static func transfer(_ object: PayloadFields) throws(BillingError) -> BillingEffect {
        func users(_ name: String) throws(BillingError) -> [String] {
            let texts = try object.texts(name)
            guard !texts.isEmpty else { throw .malformed("\(name) is missing: an array of users' ids") }
            guard case .array(let all)? = object.members[name], all.count <= PayloadFields.identitiesMaximum else {
                throw .malformed(
                    "\(name) must have at most \(PayloadFields.identitiesMaximum) ids; send several events"
                )
            }
            guard texts.allSatisfy(isUser) else { throw .malformed("\(name) must be an array of users' UUIDs") }
            return texts.map { CustomerIdentity.stored($0) }
        }
        let effect = BillingEffect.transferred(from: try users("from"), to: try users("to"))
        if let stray = object.members.keys.sorted().first(where: { !transferFields.contains($0) }) {
            throw .malformed("\(stray) has no meaning in an event of kind transferred")
        }
        return effect
    }

    private static func plan(_ name: String, _ object: PayloadFields) throws(BillingError) -> String? {
        guard let plan = try object.text(name) else { return nil }
        guard Plan.isName(plan) else {
            throw .malformed("\(name) must be a plan's name; select plan from headroom.plans lists them")
        }
        return plan
    }

    private static func instant(_ name: String, _ object: PayloadFields) throws(BillingError) -> Instant? {
        guard let text = try object.text(name) else { return nil }
        guard let instant = Instant(text) else {
            throw .malformed("\(name) must be an instant in ISO 8601, such as 2026-11-05T00:00:00Z")
        }
        return instant
    }

    /// Whether a text is a valid name of a store or a billing system.
    public static func isSource(_ text: String) -> Bool { Plan.isName(text) }

    /// Whether a text is a UUID, or the replacement of a forgotten user's, which a replayed event may have.
    private static func isUser(_ text: String) -> Bool { UserID(text) != nil || CustomerIdentity.isForgotten(text) }

    private static func quoted(_ name: String) -> String {
        let printable = name.unicodeScalars.filter { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }
        return "'\(String(String.UnicodeScalarView(printable.prefix(64))))'"
    }
}
