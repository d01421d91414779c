/// A verb's, option's or field's name in upper case, packed into two integers: a case-insensitive comparison builds no
/// string.
struct PackedName: Equatable {
    private var high: UInt64 = 0
    private var low: UInt64 = 0

    static let lengthMaximum = 16

    /// Packs a name. It is nil if `bytes` cannot be one: empty, longer than 16 bytes, or with anything other than ASCII
    /// letters and `_`.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty, bytes.count <= PackedName.lengthMaximum else { return nil }
        for byte in bytes {
            let upper: UInt8
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"): upper = byte
            case UInt8(ascii: "a")...UInt8(ascii: "z"): upper = byte & ~0x20
            default: return nil
            }
            high = high << 8 | low >> 56
            low = low << 8 | UInt64(upper)
        }
    }

    /// - Parameter name: the raw value of an enumeration's case.
    init(_ name: String) {
        guard let packed = Array(name.utf8).withUnsafeBytes({ PackedName($0) }) else {
            preconditionFailure("\(name) is no packable name; a case of an enumeration has it")
        }
        self = packed
    }
}

extension Verb {
    private static let packedNames = allCases.map { (name: PackedName($0.rawValue), verb: $0) }

    /// Finds the verb with this name, in upper or lower case.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let name = PackedName(bytes), let entry = Verb.packedNames.first(where: { $0.name == name }) else {
            return nil
        }
        self = entry.verb
    }
}

extension OptionName {
    private static let packedNames = allCases.map { (name: PackedName($0.rawValue), option: $0) }

    /// Finds the option with this name, in upper or lower case.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let name = PackedName(bytes), let entry = OptionName.packedNames.first(where: { $0.name == name }) else {
            return nil
        }
        self = entry.option
    }
}
