/// The tokens of one request, as places in its bytes: nothing is copied before it is known what it should become.
struct TokenList {
    let bytes: UnsafeRawBufferPointer
    let ranges: [Range<Int>]

    var count: Int { ranges.count }

    subscript(index: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[ranges[index]])
    }

    /// The first fault in any token.
    var textFault: TextFault? {
        for index in 0..<count {
            if let fault = self[index].textFault { return fault }
        }
        return nil
    }
}

extension UnsafeRawBufferPointer {
    /// A number as the protocol writes it: ASCII decimal digits without a sign or a leading zero. Nil for anything
    /// else, and for what exceeds an `Int`.
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

    /// The token as a string; `textFault` has been asked before.
    var text: String { String(decoding: self, as: UTF8.self) }

    /// Equal to `word`, in any case. `word` is in upper case.
    func isWord(_ word: StaticString) -> Bool {
        guard count == word.utf8CodeUnitCount else { return false }
        for (index, byte) in enumerated() {
            let upper = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) ? byte & ~0x20 : byte
            guard upper == word.utf8Start[index] else { return false }
        }
        return true
    }
}
