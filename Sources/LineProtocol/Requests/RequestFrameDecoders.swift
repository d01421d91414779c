/// What a frame decoder has found in the received bytes.
enum FrameDecoderStep {
    /// The request needs more bytes.
    case incomplete
    /// An empty line or array of so many bytes. It gets no reply.
    case empty(bytes: Int)
    /// A request of so many bytes. Its tokens have been appended.
    case request(bytes: Int)
    /// The beginning of the next request cannot be found.
    case fatal(ReplyError)
}

/// Finds the tokens of an inline request: a line, ended by LF or CRLF.
///
/// The request's size is the line without its end. The limit also applies to an incomplete line, so that an endless
/// line fails as soon as it is one byte too long, however the network has split it.
struct InlineFrameDecoder {
    /// The number of bytes from the request's start that have been searched for an LF.
    private var scannedBytes = 0

    /// - Parameter bytes: received bytes, beginning with a request's first one.
    mutating func step(
        _ bytes: UnsafeRawBufferPointer,
        _ limits: RequestLimits,
        _ tokens: inout [Range<Int>]
    ) -> FrameDecoderStep {
        // The LF of a line within the limit is among its first `bytesMaximum + 2` bytes.
        let window = UnsafeRawBufferPointer(rebasing: bytes.prefix(limits.bytesMaximum + 2))
        guard let lineFeed = window.firstPosition(of: UInt8(ascii: "\n"), from: scannedBytes) else {
            scannedBytes = window.count
            // A final CR may belong to the line's end.
            let sizeBytes = window.last == UInt8(ascii: "\r") ? window.count - 1 : window.count
            return sizeBytes > limits.bytesMaximum ? .fatal(.tooLong(bytes: limits.bytesMaximum)) : .incomplete
        }
        // One CR belongs to the line's end. Any other is a control character in the last token.
        let endsWithCR = lineFeed > 0 && window[lineFeed - 1] == UInt8(ascii: "\r")
        let sizeBytes = endsWithCR ? lineFeed - 1 : lineFeed
        guard sizeBytes <= limits.bytesMaximum else { return .fatal(.tooLong(bytes: limits.bytesMaximum)) }
        InlineFrameDecoder.split(UnsafeRawBufferPointer(rebasing: window[..<sizeBytes]), &tokens)
        guard tokens.count <= limits.tokensMaximum else { return .fatal(.tooLong(tokens: limits.tokensMaximum)) }
        return tokens.isEmpty ? .empty(bytes: lineFeed + 1) : .request(bytes: lineFeed + 1)
    }

    /// Splits the line at runs of spaces and tabs.
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
/// The request's size is that of the same request inline: the tokens and one separator between each two.
///
/// Each element is decoded once. A wrong byte fails as soon as it is received, a length once its line is complete, so
/// the result does not depend on how the network has split the request.
struct ArrayFrameDecoder {
    /// The number of bytes from the request's start that are decoded.
    private var decodedBytes = 0
    /// The number of elements; nil until the first line is complete.
    private var elements: Int?
    private var sizeBytes = 0

    /// The limits, which are Redis's own.
    private static let elementsMaximum = 1_048_576
    private static let elementBytesMaximum = 512 * 1_024 * 1_024

    /// - Parameter bytes: received bytes, beginning with a request's first one, which is `*`.
    mutating func step(
        _ bytes: UnsafeRawBufferPointer,
        _ limits: RequestLimits,
        _ tokens: inout [Range<Int>]
    ) -> FrameDecoderStep {
        if elements == nil {
            switch ArrayFrameDecoder.length(bytes, at: 1, maximum: ArrayFrameDecoder.elementsMaximum) {
            case .incomplete: return .incomplete
            case .broken: return .fatal(.brokenFraming("after * there must be a count in plain digits and CRLF"))
            case .length(0, let end): return .empty(bytes: end)
            case .length(let count, let end):
                guard count <= limits.tokensMaximum else { return .fatal(.tooLong(tokens: limits.tokensMaximum)) }
                elements = count
                decodedBytes = end
                sizeBytes = count - 1
            }
        }
        while tokens.count < elements ?? 0 {
            if let step = decodeElement(bytes, limits, &tokens) { return step }
        }
        return .request(bytes: decodedBytes)
    }

    /// Decodes one element, and returns nil if it is complete.
    private mutating func decodeElement(
        _ bytes: UnsafeRawBufferPointer,
        _ limits: RequestLimits,
        _ tokens: inout [Range<Int>]
    ) -> FrameDecoderStep? {
        guard decodedBytes < bytes.count else { return .incomplete }
        guard bytes[decodedBytes] == UInt8(ascii: "$") else {
            return .fatal(.brokenFraming("each element of a request must be a bulk string, $length CRLF bytes CRLF"))
        }
        let start: Int
        let length: Int
        switch ArrayFrameDecoder.length(bytes, at: decodedBytes + 1, maximum: ArrayFrameDecoder.elementBytesMaximum) {
        case .incomplete: return .incomplete
        case .broken: return .fatal(.brokenFraming("after $ there must be a length in plain digits and CRLF"))
        case .length(let value, let end): (length, start) = (value, end)
        }
        guard length <= limits.bytesMaximum - sizeBytes else {
            return .fatal(.tooLong(bytes: limits.bytesMaximum))
        }
        let end = start + length
        guard end < bytes.count else { return .incomplete }
        guard bytes[end] == UInt8(ascii: "\r") else { return .fatal(ArrayFrameDecoder.wrongTerminator) }
        guard end + 1 < bytes.count else { return .incomplete }
        guard bytes[end + 1] == UInt8(ascii: "\n") else { return .fatal(ArrayFrameDecoder.wrongTerminator) }
        tokens.append(start..<end)
        sizeBytes += length
        decodedBytes = end + 2
        return nil
    }

    private static let wrongTerminator = ReplyError.brokenFraming(
        "CRLF must follow after as many bytes as $ announces"
    )

    private enum Length {
        case incomplete
        case broken
        /// The number, and the position after its CRLF.
        case length(Int, end: Int)
    }

    /// Decodes plain digits and CRLF. A number over `maximum` is broken without waiting for its end, which limits the
    /// line's length.
    private static func length(_ bytes: UnsafeRawBufferPointer, at start: Int, maximum: Int) -> Length {
        var number = 0
        var position = start
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                // A leading zero would give a number a second spelling.
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
