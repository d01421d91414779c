/// Scans a line of fields in place. The names and values that it returns point into the line.
struct FieldScanner {
    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    private var end: Int

    /// - Parameter bytes: a line, with or without its line end.
    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
        end = bytes.count
        if end > 0, bytes[end - 1] == UInt8(ascii: "\n") { end -= 1 }
        if end > 0, bytes[end - 1] == UInt8(ascii: "\r") { end -= 1 }
    }

    var isAtEnd: Bool { position == end }

    mutating func skip(_ byte: UInt8) -> Bool {
        guard position < end, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    /// Reads one or more letters of one case, or `_`.
    mutating func word(of letters: ClosedRange<UInt8>) -> UnsafeRawBufferPointer? {
        let start = position
        while position < end, letters.contains(bytes[position]) || bytes[position] == UInt8(ascii: "_") {
            position += 1
        }
        return position == start ? nil : UnsafeRawBufferPointer(rebasing: bytes[start..<position])
    }

    /// Reads the status word with which a line begins.
    mutating func status() -> UnsafeRawBufferPointer? {
        guard skip(UInt8(ascii: "+")) else { return nil }
        return word(of: UInt8(ascii: "A")...UInt8(ascii: "Z"))
    }

    /// Reads the next field's name. It skips the space before it and the equals sign after it.
    mutating func name() -> UnsafeRawBufferPointer? {
        guard skip(UInt8(ascii: " ")), let name = word(of: UInt8(ascii: "a")...UInt8(ascii: "z")),
            skip(UInt8(ascii: "="))
        else { return nil }
        return name
    }

    /// Reads a value up to the next space, or a quoted one. It is nil for an unclosed quote, or one in the middle.
    mutating func value() -> FieldText? {
        let start = position
        guard skip(UInt8(ascii: "\"")) else {
            while position < end, bytes[position] != UInt8(ascii: " ") {
                guard bytes[position] != UInt8(ascii: "\""), bytes[position] != UInt8(ascii: "\\") else { return nil }
                position += 1
            }
            guard position > start else { return nil }
            return FieldText(bytes: UnsafeRawBufferPointer(rebasing: bytes[start..<position]), hasEscapes: false)
        }
        var hasEscapes = false
        while position < end {
            let byte = bytes[position]
            position += 1
            if byte == UInt8(ascii: "\"") {
                let inner = UnsafeRawBufferPointer(rebasing: bytes[start + 1..<position - 1])
                return FieldText(bytes: inner, hasEscapes: hasEscapes)
            }
            guard byte == UInt8(ascii: "\\") else { continue }
            guard position < end, bytes[position] == UInt8(ascii: "\"") || bytes[position] == UInt8(ascii: "\\")
            else { return nil }
            hasEscapes = true
            position += 1
        }
        return nil
    }
}

/// A field's value without its quotes. It points into the line.
struct FieldText {
    let bytes: UnsafeRawBufferPointer
    /// Whether some bytes are escaped with a backslash.
    let hasEscapes: Bool

    var text: String {
        guard hasEscapes else { return String(decoding: bytes, as: UTF8.self) }
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        var isEscaped = false
        for byte in bytes {
            isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
            if !isEscaped { text.append(byte) }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
