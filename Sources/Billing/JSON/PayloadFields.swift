import Usage

/// The members of one object of a store's payload, read by name and form. An error names the field as who wrote the
/// payload knows it, and never repeats what was in it.
///
/// null counts as absent; members that nobody asks for are left alone, because stores add fields at any time.
struct PayloadFields {
    /// Ids and words of stores are short; this is also what the database takes.
    static let textLengthMaximum = 255
    /// Types, reasons and other words of a store's own lists.
    static let wordLengthMaximum = 64
    /// Customers with hundreds of aliases exist; those that matter come first.
    static let identitiesMaximum = 100
    /// A subscription has at most 20 items, and an event shows the first 10 lines of an invoice. More than this is not kept.
    static let objectsMaximum = 50

    enum Form {
        case text, texts, word, integer, flag, identity, identities
        /// Milliseconds since 1970.
        case instant
        /// Seconds since 1970.
        case seconds
        /// A UUID. Any other text is left out: an app's developer chose it, and it names nobody here.
        case user
        /// The id of another object, or that object, of which only the id is kept.
        case reference
    }

    private let path: String
    let members: [String: JSONValue]

    /// - Parameter path: how errors call the object; empty for the outermost one.
    init(_ value: JSONValue?, path: String) throws(BillingError) {
        guard case .object(let members)? = value else {
            let what = path.isEmpty ? "the body" : path
            throw .malformed(
                value == nil || value == .null ? "\(what) is missing" : "\(what) must be a JSON object"
            )
        }
        self.path = path
        self.members = members
    }

    func has(_ name: String) -> Bool { members[name] != nil }

    func object(_ name: String) throws(BillingError) -> PayloadFields? {
        guard let value = value(name) else { return nil }
        return try PayloadFields(value, path: full(name))
    }

    func text(_ name: String) throws(BillingError) -> String? {
        guard let value = value(name) else { return nil }
        return try text(value, name)
    }

    func word(_ name: String) throws(BillingError) -> String? {
        guard let word = try text(name) else { return nil }
        guard word.unicodeScalars.count <= PayloadFields.wordLengthMaximum else {
            throw .malformed("\(full(name)) must have at most \(PayloadFields.wordLengthMaximum) characters")
        }
        return word
    }

    func texts(_ name: String) throws(BillingError) -> [String] {
        guard let value = value(name) else { return [] }
        guard case .array(let elements) = value else { throw .malformed("\(full(name)) must be an array of texts") }
        var texts: [String] = []
        // An empty name is nobody's.
        for element in elements.prefix(PayloadFields.identitiesMaximum) where element != .string("") {
            texts.append(try text(element, name))
        }
        return texts
    }

    func flag(_ name: String) throws(BillingError) -> Bool? {
        guard let value = value(name) else { return nil }
        guard case .bool(let flag) = value else { throw .malformed("\(full(name)) must be true or false") }
        return flag
    }

    func integer(_ name: String) throws(BillingError) -> Int64? {
        switch value(name) {
        case nil: return nil
        case .integer(let number)?: return number
        case .decimal(let number)? where number == number.rounded() && number.magnitude < 9e15: return Int64(number)
        default: throw .malformed("\(full(name)) must be a whole number")
        }
    }

    /// Of milliseconds since 1970, as RevenueCat and the App Store write them.
    func instant(_ name: String) throws(BillingError) -> Instant? {
        guard let milliseconds = try integer(name) else { return nil }
        guard let instant = Instant(millisecondsSince1970: milliseconds) else {
            throw .malformed("\(full(name)) must be milliseconds since 1970, in the years 2000 to 9999")
        }
        return instant
    }

    /// Of whole seconds since 1970, as Stripe writes them.
    func seconds(_ name: String) throws(BillingError) -> Instant? {
        guard let seconds = try integer(name) else { return nil }
        guard (946_684_800..<253_402_300_800).contains(seconds) else {
            throw .malformed("\(full(name)) must be seconds since 1970, in the years 2000 to 9999")
        }
        return Instant(secondsSince1970: seconds)
    }

    /// In the form in which users are known. nil also where it is no UUID.
    func user(_ name: String) -> String? {
        guard case .string(let text)? = members[name] else { return nil }
        return UserID(text)?.description
    }

    /// Of an object that is named by its id, or stands there itself.
    func reference(_ name: String) throws(BillingError) -> String? {
        guard case .object? = value(name) else { return try text(name) }
        return try object(name)?.text("id")
    }

    func objects(_ name: String) throws(BillingError) -> [PayloadFields] {
        guard let value = value(name) else { return [] }
        guard case .array(let elements) = value else { throw .malformed("\(full(name)) must be an array of objects") }
        var objects: [PayloadFields] = []
        for element in elements.prefix(PayloadFields.objectsMaximum) {
            objects.append(try PayloadFields(element, path: full(name)))
        }
        return objects
    }

    func required<Value>(
        _ name: String,
        _ read: (PayloadFields) -> (String) throws(BillingError) -> Value?
    ) throws(BillingError) -> Value {
        guard let value = try read(self)(name) else { throw .malformed("\(full(name)) is missing") }
        return value
    }

    /// What is kept: these fields, where they are there and have the right form, and nothing else.
    ///
    /// - Parameter informative: fields that no effect depends on: one that has another form than today's is left out, and
    ///   its event is not refused for it.
    func kept(
        _ forms: KeyValuePairs<String, Form>,
        informative: Set<String> = []
    ) throws(BillingError) -> [String: JSONValue] {
        var kept: [String: JSONValue] = [:]
        for (name, form) in forms {
            // That a field is there and null can say something: no grace period, say.
            if members[name] == .null { kept[name] = .null }
            guard value(name) != nil else { continue }
            if informative.contains(name) {
                kept[name] = (try? keptValue(name, form)) ?? nil
            } else {
                kept[name] = try keptValue(name, form)
            }
        }
        return kept
    }

    private func keptValue(_ name: String, _ form: Form) throws(BillingError) -> JSONValue? {
        switch form {
        case .text: return try text(name).map { .string($0) }
        case .texts: return .array(try texts(name).map { .string($0) })
        case .word: return try word(name).map { .string($0) }
        case .identity: return try text(name).map { .string(CustomerIdentity.kept($0)) }
        case .identities:
            return .array(CustomerIdentity.distinct(try texts(name).map(CustomerIdentity.kept)).map { .string($0) })
        case .flag: return try flag(name).map { .bool($0) }
        case .integer: return try integer(name).map { .integer($0) }
        case .instant: return try instant(name).map { .integer($0.microsecondsSince1970 / 1_000) }
        case .seconds: return try seconds(name).map { .integer($0.secondsSince1970) }
        case .user: return user(name).map { .string($0) }
        case .reference: return try reference(name).map { .string($0) }
        }
    }

    private func value(_ name: String) -> JSONValue? {
        members[name] == .null ? nil : members[name]
    }

    private func full(_ name: String) -> String {
        path.isEmpty ? name : "\(path).\(name)"
    }

    private func text(_ value: JSONValue, _ name: String) throws(BillingError) -> String {
        guard case .string(let text) = value else { throw .malformed("\(full(name)) must be a text") }
        guard !text.isEmpty, text.unicodeScalars.count <= PayloadFields.textLengthMaximum,
            !text.unicodeScalars.contains(where: { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) })
        else {
            throw .malformed(
                "\(full(name)) must have 1 to \(PayloadFields.textLengthMaximum) characters, and no control characters"
            )
        }
        return text
    }
}
