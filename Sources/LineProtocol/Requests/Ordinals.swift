import Usage

extension Verb {
    /// The position in `allCases`, without a search: an enumeration without payloads is stored as the number of its
    /// case, in the order of declaration (Swift's ABI, TypeLayout, "C-Like Enums"). Every request is counted by it.
    @inline(__always)
    public var ordinal: Int { Int(unsafeBitCast(self, to: UInt8.self)) }
}

extension Tier {
    /// The position in `allCases`, as for `Verb.ordinal`.
    @inline(__always)
    public var ordinal: Int { Int(unsafeBitCast(self, to: UInt8.self)) }
}
