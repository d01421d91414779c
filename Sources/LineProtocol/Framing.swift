/// What a look at the bytes of a request has found.
enum FramingStep {
    /// The request is not all here.
    case incomplete
    /// So many bytes ask for nothing and are answered with nothing.
    case blank(bytes: Int)
    /// A request of so many bytes; its tokens have been appended.
    case request(bytes: Int)
    /// What follows cannot be told apart any more.
    case fatal(ReplyError)
}

/// Finds the tokens of an inline request: a line, ended by LF or CRLF.
///
/// The request's size is the line without its end. It is held against the limit while the line is still coming, so
/// that a stream without an end is refused once it is one byte too long, however the network cut it.
struct InlineFraming {
    /// So many bytes from the request's start are known to hold no LF.
    private var scannedBytes = 0

    /// - Parameter bytes: all that has come from the request's first byte on.
    mutating func step(
        _ bytes: UnsafeRawBufferPointer,
        _ limits: RequestLimits,
        _ tokens: inout [Range<Int>]
    ) -> FramingStep {
        // A line of the limit's size has its LF at most two bytes on; nothing beyond is looked at.
        let window = UnsafeRawBufferPointer(rebasing: bytes.prefix(limits.requestSizeBytes + 2))
        guard let lineFeed = window.firstPosition(of: UInt8(ascii: "\n"), from: scannedBytes) else {
            scannedBytes = window.count
            // One CR at the very end may turn out to be the line's end.
            let sizeBytes = window.last == UInt8(ascii: "\r") ? window.count - 1 : window.count
            return sizeBytes > limits.requestSizeBytes ? .fatal(.tooLong(bytes: limits.requestSizeBytes)) : .incomplete
        }
        // One CR belongs to the line's end; another one is a control character in the last token.
        let endsWithCR = lineFeed > 0 && window[lineFeed - 1] == UInt8(ascii: "\r")
        let sizeBytes = endsWithCR ? lineFeed - 1 : lineFeed
        guard sizeBytes <= limits.requestSizeBytes else { return .fatal(.tooLong(bytes: limits.requestSizeBytes)) }
        InlineFraming.split(UnsafeRawBufferPointer(rebasing: window[..<sizeBytes]), &tokens)
        guard tokens.count <= limits.tokens else { return .fatal(.tooLong(tokens: limits.tokens)) }
        return tokens.isEmpty ? .blank(bytes: lineFeed + 1) : .request(bytes: lineFeed + 1)
    }

    /// Splits at runs of spaces and tabs.
    private static func split(_ line: UnsafeRawBufferPointer, _ tokens: inout [Range<Int>]) {
        var start = 0
        for position in 0..<line.count {
            guard line[position] == UInt8(ascii: " ") || line[position] == UInt8(ascii: "\t") else { continue }
            if position > start { tokens.append(start..<position) }
            start = position + 1
        }
        if line.count > start { tokens.append(start..<line.count) }
    }
}

/// Finds the tokens of an array request: `*N` CRLF, then N times `$length` CRLF bytes CRLF.
///
/// The request's size is what it would be inline: the tokens and one separator between each two. So a request is
/// accepted or refused alike in both framings.
///
/// Elements are taken one by one, and what was taken is not looked at again. Each broken byte is refused when it has
/// come, each length when its line has: the answer does not depend on how the network cut the request.
struct ArrayFraming {
    /// All before this has been taken.
    private var takenBytes = 0
    /// Nil until the first line has come.
    private var elements: Int?
    private var sizeBytes = 0

    /// Redis's own limits: a larger number is no client's mistake but garbage.
    private static let elementsMaximum = 1_048_576
    private static let elementBytesMaximum = 512 * 1_024 * 1_024

    /// - Parameter bytes: all that has come from the request's first byte on, which is `*`.
    mutating func step(
        _ bytes: UnsafeRawBufferPointer,
        _ limits: RequestLimits,
        _ tokens: inout [Range<Int>]
    ) -> FramingStep {
        if elements == nil {
            switch ArrayFraming.length(bytes, at: 1, maximum: ArrayFraming.elementsMaximum) {
            case .incomplete: return .incomplete
            case .broken: return .fatal(.brokenFraming("after * there must be a count in plain digits and CRLF"))
            case .length(0, let end): return .blank(bytes: end)
            case .length(let count, let end):
                guard count <= limits.tokens else { return .fatal(.tooLong(tokens: limits.tokens)) }
                elements = count
                takenBytes = end
                sizeBytes = count - 1
            }
        }
        while tokens.count < elements ?? 0 {
            if let step = takeElement(bytes, limits, &tokens) { return step }
        }
        return .request(bytes: takenBytes)
    }

    /// Nil when the element has been taken.
    private mutating func takeElement(
        _ bytes: UnsafeRawBufferPointer,
        _ limits: RequestLimits,
        _ tokens: inout [Range<Int>]
    ) -> FramingStep? {
        guard takenBytes < bytes.count else { return .incomplete }
        guard bytes[takenBytes] == UInt8(ascii: "$") else {
            return .fatal(.brokenFraming("each element of a request must be a bulk string, $length CRLF bytes CRLF"))
        }
        let start: Int
        let length: Int
        switch ArrayFraming.length(bytes, at: takenBytes + 1, maximum: ArrayFraming.elementBytesMaximum) {
        case .incomplete: return .incomplete
        case .broken: return .fatal(.brokenFraming("after $ there must be a length in plain digits and CRLF"))
        case .length(let value, let end): (length, start) = (value, end)
        }
        guard length <= limits.requestSizeBytes - sizeBytes else {
            return .fatal(.tooLong(bytes: limits.requestSizeBytes))
        }
        let end = start + length
        guard end < bytes.count else { return .incomplete }
        guard bytes[end] == UInt8(ascii: "\r") else { return .fatal(ArrayFraming.wrongTerminator) }
        guard end + 1 < bytes.count else { return .incomplete }
        guard bytes[end + 1] == UInt8(ascii: "\n") else { return .fatal(ArrayFraming.wrongTerminator) }
        tokens.append(start..<end)
        sizeBytes += length
        takenBytes = end + 2
        return nil
    }

    private static let wrongTerminator = ReplyError.brokenFraming(
        "after as many bytes as $ announced there must be CRLF"
    )

    private enum Length {
        case incomplete
        case broken
        /// The number, and where the bytes after its CRLF begin.
        case length(Int, end: Int)
    }

    /// Reads plain digits and CRLF. A number over `maximum` is broken as soon as its digits say so: hence this line is
    /// never long, and it needs no limit of its own.
    private static func length(_ bytes: UnsafeRawBufferPointer, at start: Int, maximum: Int) -> Length {
        var number = 0
        var position = start
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                // No leading zero: one number has one spelling.
                guard position == start || number > 0 else { return .broken }
                number = number * 10 + Int(bytes[position] - UInt8(ascii: "0"))
                guard number <= maximum else { return .broken }
                position += 1
            case UInt8(ascii: "\r"):
                guard position > start else { return .broken }
                guard position + 1 < bytes.count else { return .incomplete }
                return bytes[position + 1] == UInt8(ascii: "\n") ? .length(number, end: position + 2) : .broken
            default: return .broken
            }
        }
        return .incomplete
    }
}
