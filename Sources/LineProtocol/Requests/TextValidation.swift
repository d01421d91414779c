/// Why a token is not valid text.
enum TextError: Equatable {
    case invalidUTF8
    case controlCharacter
}

extension TextError {
    var replyError: ReplyError {
        switch self {
        case .invalidUTF8: .badArgument("the request is not valid UTF-8; send text in UTF-8")
        case .controlCharacter: .badArgument("the request has a control character; send printable text, ended by LF")
        }
    }
}

extension UnsafeRawBufferPointer {
    /// The first error in a token, or nil. Printable ASCII, which nearly all tokens are, is checked eight bytes at a
    /// time.
    var textError: TextError? {
        isPrintableASCII ? nil : firstTextError
    }

    /// The first error in a token, or nil. Well-formed UTF-8 is that of the Unicode Standard's table 3-7, which
    /// excludes overlong forms, surrogates and code points beyond U+10FFFF, which would give one text two spellings, or
    /// none.
    private var firstTextError: TextError? {
        var index = 0
        while index < count {
            let lead = self[index]
            let second: ClosedRange<UInt8>
            let length: Int
            switch lead {
            case 0x20...0x7E:
                index += 1
                continue
            case 0x00...0x1F, 0x7F: return .controlCharacter
            case 0xC2...0xDF: (second, length) = (0x80...0xBF, 2)
            case 0xE0: (second, length) = (0xA0...0xBF, 3)
            case 0xE1...0xEC, 0xEE...0xEF: (second, length) = (0x80...0xBF, 3)
            case 0xED: (second, length) = (0x80...0x9F, 3)
            case 0xF0: (second, length) = (0x90...0xBF, 4)
            case 0xF1...0xF3: (second, length) = (0x80...0xBF, 4)
            case 0xF4: (second, length) = (0x80...0x8F, 4)
            default: return .invalidUTF8
            }
            guard count - index >= length, second.contains(self[index + 1]) else { return .invalidUTF8 }
            for offset in 2..<Swift.max(2, length) where self[index + offset] & 0xC0 != 0x80 { return .invalidUTF8 }
            // U+0080 to U+009F are C2 80 to C2 9F: terminals interpret some of them as escapes.
            if lead == 0xC2, self[index + 1] <= 0x9F { return .controlCharacter }
            index += length
        }
        return nil
    }
}
