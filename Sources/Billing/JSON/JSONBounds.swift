/// How much of a reader's work a text can ask for, found with one look over its bytes: decoding makes a value for each comma
/// and a frame of the stack for each level, and a body of the size that is allowed has room for many of both. Whether it is
/// JSON at all is the decoder's matter.
enum JSONBounds {
    /// No store nests deeper than six.
    static let depthMaximum = 32
    static let valuesMaximum = 20_000

    /// - Throws: too large.
    static func check(_ bytes: [UInt8]) throws(BillingError) {
        var depth = 0
        var values = 1
        var isInText = false
        var isEscaped = false
        for byte in bytes {
            if isInText {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInText = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInText = true
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                values += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: ","): values += 1
            default: continue
            }
            guard depth < depthMaximum else {
                throw BillingError(.tooLarge, "the body is nested deeper than \(depthMaximum)")
            }
            guard values <= valuesMaximum else {
                throw BillingError(.tooLarge, "the body has more than \(valuesMaximum) values")
            }
        }
    }
}
