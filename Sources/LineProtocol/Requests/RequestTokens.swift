/// The tokens of one request, the verb and its arguments, as ranges of its bytes. Accessing one copies nothing.
struct RequestTokens {
    let bytes: UnsafeRawBufferPointer
    let ranges: [Range<Int>]

    var count: Int { ranges.count }

    subscript(index: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[ranges[index]])
    }

    /// The first error in any token, or nil.
    var textError: TextError? {
        for index in 0..<count {
            if let error = self[index].textError { return error }
        }
        return nil
    }
}

extension UnsafeRawBufferPointer {
    /// The bytes as a number in the protocol's form: ASCII decimal digits without a sign or a leading zero. It is nil
    /// for anything else, and for numbers that do not fit an `Int`.
    var plainNumber: Int? {
        guard let first, first != UInt8(ascii: "0") || count == 1 else { return nil }
        var number = 0
        for byte in self {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            let (product, productOverflows) = number.multipliedReportingOverflow(by: 10)
            let (sum, sumOverflows) = product.addingReportingOverflow(Int(byte - UInt8(ascii: "0")))
            guard !productOverflows, !sumOverflows else { return nil }
            number = sum
        }
        return number
    }

    /// The token as a string. `textError` must be nil.
    var text: String { String(decoding: self, as: UTF8.self) }

    /// Whether the token is `word`, ignoring case. `word` must be in upper case.
    func isWord(_ word: StaticString) -> Bool {
        guard count == word.utf8CodeUnitCount else { return false }
        for (index, byte) in enumerated() {
            let upper = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? byte & ~0x20 : byte
            guard upper == word.utf8Start[index] else { return false }
        }
        return true
    }
}
