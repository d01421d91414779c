/// A verb or option name in upper case, packed into two words: names are compared as integers, so that neither
/// looking one up nor ignoring its case builds a string.
struct PackedName: Equatable {
    private let count: Int
    private let first: UInt64
    private let second: UInt64

    static let lengthMaximum = 16

    /// Letters in the place of those that a shorter name lacks.
    private static var filler: UInt64 { 0x4141_4141_4141_4141 }

    /// Nil when `bytes` cannot be a name: empty, longer than 16 bytes, or with anything but ASCII letters and `_`.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty, bytes.count <= PackedName.lengthMaximum,
            let first = PackedName.upperCase(bytes.eight(from: 0, filler: PackedName.filler)),
            let second = PackedName.upperCase(bytes.eight(from: min(8, bytes.count), filler: PackedName.filler))
        else { return nil }
        (count, self.first, self.second) = (bytes.count, first, second)
    }

    /// The word in upper case, or nil when a byte of it is no part of a name.
    private static func upperCase(_ word: UInt64) -> UInt64? {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops = ones &* 0x80
        let difference = word ^ (ones &* UInt64(UInt8(ascii: "_")))
        // Each of these sums sets a byte's top bit where the byte is at least so much. Bytes of 0x80 and more could
        // carry into their neighbour; they are refused by themselves.
        let lower = word | ones &* 0x20
        let isLetter = (lower &+ ones &* (0x80 - 0x61)) & ~(lower &+ ones &* (0x80 - 0x7B))
        let isNoUnderscore = difference &+ ones &* 0x7F
        guard (word | (~isLetter & isNoUnderscore)) & tops == 0 else { return nil }
        // An underscore lacks the bit that makes a letter lower-case.
        return word & ~(ones &* 0x20)
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
