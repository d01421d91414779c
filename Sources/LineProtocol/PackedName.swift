/// A verb or option name in upper case, packed into two words: names are compared as integers, so that neither
/// looking one up nor ignoring its case builds a string.
struct PackedName: Equatable {
    private var high: UInt64 = 0
    private var low: UInt64 = 0

    static let lengthMaximum = 16

    /// Nil when `bytes` cannot be a name: empty, longer than 16 bytes, or with anything but ASCII letters and `_`.
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

    fileprivate init(_ name: String) {
        guard let packed = Array(name.utf8).withUnsafeBytes({ PackedName($0) }) else {
            preconditionFailure("the table below has a name that cannot be packed")
        }
        self = packed
    }
}

extension Verb {
    private static let packedNames = allCases.map { (name: PackedName($0.rawValue), verb: $0) }

    /// The verb spelled by `bytes`, in any case.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let name = PackedName(bytes), let entry = Verb.packedNames.first(where: { $0.name == name }) else {
            return nil
        }
        self = entry.verb
    }
}

extension OptionName {
    private static let packedNames = allCases.map { (name: PackedName($0.rawValue), option: $0) }

    /// The option spelled by `bytes`, in any case.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let name = PackedName(bytes), let entry = OptionName.packedNames.first(where: { $0.name == name }) else {
            return nil
        }
        self = entry.option
    }
}
