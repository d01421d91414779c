import Billing
import JSON
import Usage

/// The members of a JSON object in a store's payload, read by name and format. An error names the field by its path in
/// the payload and never repeats its value.
///
/// null and empty texts count as absent. Unknown members are ignored, because stores add fields at any time.
struct PayloadFields {
    /// The database has this limit. Ids and enumeration values of stores are shorter.
    static let textLengthMaximum = 255
    /// No type, reason or other value of a store's enumerations is longer. So a longer one is unknown: it is cut, and
    /// recorded as such.
    static let wordLengthMaximum = 64
    /// Some customers have hundreds of aliases; the important ones come first.
    static let identitiesMaximum = 100
    /// A subscription has at most 20 items, and an event has the first 10 lines of an invoice. More elements are
    /// dropped.
    static let objectsMaximum = 50

    enum Format {
        case text, texts, word, integer, number, flag
        /// An id that the app's developer has chosen for a customer, which may be the user's UUID or name.
        case identity, identities
        /// Milliseconds since 1970.
        case instant
        /// Seconds since 1970.
        case seconds
        /// A user's UUID or name. Any other text is dropped: the app's developer chose it, and it identifies no user.
        case user
        /// The id of another object, or the object itself, of which only the id is stored.
        case reference
    }

    private let path: String
    /// The namespace of users' names; nil where users are UUIDs only, as they are in stored payloads.
    private let namespace: UserNamespace?
    let members: [String: JSONValue]
    /// Whether a member of an unexpected format counts as absent, in `stored` and in objects within this one.
    private(set) var isLenient: Bool

    /// - Parameter path: the name of the object in errors; empty for the outermost object.
    init(
        _ value: JSONValue?,
        path: String,
        in namespace: UserNamespace? = nil,
        isLenient: Bool = false
    ) throws(BillingError) {
        guard case .object(let members)? = value else {
            let what = path.isEmpty ? "the body" : path
            throw .malformed(
                value == nil || value == .null ? "\(what) is missing" : "\(what) must be a JSON object"
            )
        }
        self.path = path
        self.namespace = namespace
        self.members = members.filter { $0.value != .string("") }
        self.isLenient = isLenient
    }

    /// The same members, for events without effects: whatever their fields are, they are recorded.
    var lenient: PayloadFields {
        var lenient = self
        lenient.isLenient = true
        return lenient
    }

    func has(_ name: String) -> Bool { members[name] != nil }

    func object(_ name: String) throws(BillingError) -> PayloadFields? {
        guard let value = value(name) else { return nil }
        return try read { () throws(BillingError) in try object(value, name) }
    }

    /// Returns the object of the name. A lenient object returns one without members if there is none.
    func requiredObject(_ name: String) throws(BillingError) -> PayloadFields {
        if let object = try object(name) { return object }
        return try object(isLenient ? .object([:]) : nil, name)
    }

    private func object(_ value: JSONValue?, _ name: String) throws(BillingError) -> PayloadFields {
        try PayloadFields(value, path: full(name), in: namespace, isLenient: isLenient)
    }

    private func read<Value>(_ read: () throws(BillingError) -> Value?) throws(BillingError) -> Value? {
        do throws(BillingError) {
            return try read()
        } catch {
            guard isLenient else { throw error }
            return nil
        }
    }

    func text(_ name: String) throws(BillingError) -> String? {
        guard let value = value(name) else { return nil }
        return try text(value, name)
    }

    /// Returns a text of at most `wordLengthMaximum` characters; more are cut off.
    func word(_ name: String) throws(BillingError) -> String? {
        guard let value = value(name) else { return nil }
        guard case .string(let text) = value else { return try self.text(value, name) }
        let start = text.unicodeScalars.prefix(PayloadFields.wordLengthMaximum)
        return try self.text(.string(String(String.UnicodeScalarView(start))), name)
    }

    func texts(_ name: String) throws(BillingError) -> [String] {
        guard let value = value(name) else { return [] }
        guard case .array(let elements) = value else { throw .malformed("\(full(name)) must be an array of texts") }
        var texts: [String] = []
        // An empty id identifies no customer.
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

    func number(_ name: String) throws(BillingError) -> Double? {
        switch value(name) {
        case nil: return nil
        case .integer(let number)?: return Double(number)
        case .decimal(let number)?: return number
        default: throw .malformed("\(full(name)) must be a number")
        }
    }

    /// Reads milliseconds since 1970, the format of RevenueCat and the App Store.
    func instant(_ name: String) throws(BillingError) -> Instant? {
        guard let milliseconds = try integer(name) else { return nil }
        guard let instant = Instant(millisecondsSince1970: milliseconds) else {
            throw .malformed("\(full(name)) must be milliseconds since 1970, in the years 2000 to 9999")
        }
        return instant
    }

    /// Reads whole seconds since 1970, Stripe's format.
    func seconds(_ name: String) throws(BillingError) -> Instant? {
        guard let seconds = try integer(name) else { return nil }
        guard (946_684_800..<253_402_300_800).contains(seconds) else {
            throw .malformed("\(full(name)) must be seconds since 1970, in the years 2000 to 9999")
        }
        return Instant(secondsSince1970: seconds)
    }

    /// Returns a user's UUID in canonical form, also that of a name; nil for any other value.
    func user(_ name: String) -> String? {
        members[name]?.string.flatMap { UserID($0, in: namespace)?.description }
    }

    /// The id of an object that is given by its id or in full.
    func reference(_ name: String) throws(BillingError) -> String? {
        try read { () throws(BillingError) in
            guard case .object? = value(name) else { return try text(name) }
            return try object(name)?.text("id")
        }
    }

    func objects(_ name: String) throws(BillingError) -> [PayloadFields] {
        guard let value = value(name) else { return [] }
        guard case .array(let elements) = value else {
            guard isLenient else { throw .malformed("\(full(name)) must be an array of objects") }
            return []
        }
        var objects: [PayloadFields] = []
        for element in elements.prefix(PayloadFields.objectsMaximum) {
            objects += try read { () throws(BillingError) in [try object(element, name)] } ?? []
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

    /// Returns these fields and no others, for storing.
    ///
    /// - Parameter informative: fields that no effect depends on. If one has an unexpected format, it is dropped and
    ///   the event is accepted; any other field throws, unless this object is lenient.
    func stored(
        _ formats: KeyValuePairs<String, Format>,
        informative: Set<String> = []
    ) throws(BillingError) -> [String: JSONValue] {
        var stored: [String: JSONValue] = [:]
        for (name, format) in formats {
            // null can have a meaning of its own, such as "no grace period".
            if members[name] == .null { stored[name] = .null }
            guard value(name) != nil else { continue }
            let reader = informative.contains(name) ? lenient : self
            stored[name] = try reader.read { () throws(BillingError) in try storedValue(name, format) }
        }
        return stored
    }

    private func storedValue(_ name: String, _ format: Format) throws(BillingError) -> JSONValue? {
        switch format {
        case .text: return try text(name).map { .string($0) }
        case .texts: return .array(try texts(name).map { .string($0) })
        case .word: return try word(name).map { .string($0) }
        case .identity: return try text(name).map { .string(CustomerIdentity.stored($0, in: namespace)) }
        case .identities:
            let stored = try texts(name).map { CustomerIdentity.stored($0, in: namespace) }
            return .array(CustomerIdentity.distinct(stored).map { .string($0) })
        case .flag: return try flag(name).map { .bool($0) }
        case .integer: return try integer(name).map { .integer($0) }
        case .number: return try number(name) == nil ? nil : value(name)
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
