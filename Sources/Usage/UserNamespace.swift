/// The namespace in which texts that are no UUIDs stand for users: the ids of Clerk, Firebase or Auth0, and numbers.
///
/// Such a text stands for the UUID of version 5 (RFC 9562) of the text in the namespace. So it is the same user in
/// every instance, and nothing has to be stored to find it again. `headroom.user_id` computes the same in SQL.
public struct UserNamespace: Sendable, Hashable {
    public let id: UserID

    public init(_ id: UserID) {
        self.id = id
    }

    /// - Parameter name: the name in UTF-8.
    /// - Returns: nil for a text that is no name: see `isName`.
    public func user(named name: UnsafeRawBufferPointer) -> UserID? {
        guard UserNamespace.isName(name) else { return nil }
        var hash = SHA1()
        withUnsafeBytes(of: (id.high.bigEndian, id.low.bigEndian)) { hash.update($0) }
        hash.update(name)
        let digest = hash.finalize()
        let high = UInt64(digest.0) << 32 | UInt64(digest.1)
        let low = UInt64(digest.2) << 32 | UInt64(digest.3)
        // The third group has the version, the fourth the variant.
        return UserID(
            high: high & 0xFFFF_FFFF_FFFF_0FFF | 0x5000,
            low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        )
    }

    /// Whether the text has 1 to 255 bytes, and neither a space nor a control character: U+0000 to U+0020, U+007F to
    /// U+009F. `.` and `..` are no names: in the path of a URL, however they are encoded, they stand for a folder.
    public static func isName(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { isName(UnsafeRawBufferPointer($0)) }
    }

    private static func isName(_ name: UnsafeRawBufferPointer) -> Bool {
        guard (1...255).contains(name.count) else { return false }
        if name.count <= 2, name.allSatisfy({ $0 == UInt8(ascii: ".") }) { return false }
        var previous: UInt8 = 0
        for byte in name {
            // U+0080 to U+009F are C2 80 to C2 9F in UTF-8.
            guard byte > 0x20, byte != 0x7F, previous != 0xC2 || byte > 0x9F else { return false }
            previous = byte
        }
        return true
    }
}

extension UserNamespace {
    /// The rule for a user's id, for error messages.
    ///
    /// - Parameters:
    ///   - namespace: nil if users are UUIDs only.
    ///   - argument: the name of the argument or member that has the id.
    public static func rule(_ namespace: UserNamespace?, of argument: String = "user") -> String {
        namespace == nil
            ? "\(argument) must be a UUID: 8-4-4-4-12 hexadecimal digits; other ids need the setting user-namespace"
            : "\(argument) must be a UUID, or a text of 1 to 255 bytes without spaces and control characters, and not . or .."
    }
}

extension UserNamespace: CustomStringConvertible {
    public var description: String { id.description }
}

extension UserID {
    /// Parses a user's UUID, or with a namespace any other name of a user.
    public init?(_ text: UnsafeRawBufferPointer, in namespace: UserNamespace?) {
        guard let user = UserID(text) ?? namespace?.user(named: text) else { return nil }
        self = user
    }

    public init?(_ text: String, in namespace: UserNamespace?) {
        var text = text
        guard let user = text.withUTF8({ UserID(UnsafeRawBufferPointer($0), in: namespace) }) else { return nil }
        self = user
    }
}
