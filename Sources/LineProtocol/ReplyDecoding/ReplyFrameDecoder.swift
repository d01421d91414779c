import NIOCore

/// A reply that violates the protocol. The beginning of the next one cannot be found.
public struct MalformedReply: Error, Sendable, Equatable, CustomStringConvertible {
    enum Reason: Equatable {
        /// The first byte is none with which a reply begins.
        case kind
        /// A length or a count is not a number, or too large.
        case length
        case lineTooLong
        case listTooLong
        case nested
        case fieldLine
        case value(of: String)
        case list
    }

    let reason: Reason

    init(_ reason: Reason) {
        self.reason = reason
    }

    public var description: String {
        let what =
            switch reason {
            case .kind: "a reply begins with an unknown byte"
            case .length: "a reply has an invalid length"
            case .lineTooLong: "a line of a reply is longer than \(ReplyFrameDecoder.lineBytesMaximum) bytes"
            case .listTooLong: "a list of a reply is longer than \(ReplyFrameDecoder.listBytesMaximum) bytes"
            case .nested: "a reply has a list within a list"
            case .fieldLine: "a reply lacks a field, or is not a line of fields"
            case .value(let name): "a reply's field \(name) has an unknown value"
            case .list: "a reply has an unexpected list, or lacks an expected one"
            }
        return "\(what); is it another version, or another service?"
    }
}

/// One line or bulk string of a reply, without its framing.
public struct ReplyElement: Sendable, Equatable {
    public enum Kind: UInt8, Sendable {
        /// `+`
        case simple = 0x2B
        /// `-`
        case error = 0x2D
        /// `:`
        case integer = 0x3A
        /// `$`
        case bulk = 0x24
    }

    public var kind: Kind
    public var bytes: ByteBuffer

    public var text: String { String(buffer: bytes) }
}

/// Splits a stream of bytes into replies, however the network has split it.
///
/// Supports what Headroom sends: lines, lists of lines, and the arrays of bulk strings of publish and subscribe. Lists
/// are not nested.
public struct ReplyFrameDecoder: Sendable {
    public enum Frame: Sendable, Equatable {
        case single(ReplyElement)
        case list([ReplyElement])
    }

    /// The most bytes of a line. No service sends a longer one.
    public static let lineBytesMaximum = 65_536
    static let elementsMaximum = 65_536
    /// The most bytes of a list. The longest that a service sends, a history of a hundred years, has a quarter of a
    /// million.
    static let listBytesMaximum = 8_388_608

    private var elements: [ReplyElement] = []
    private var elementBytes = 0
    /// The number of elements that the list still needs; nil between lists.
    private var missing: Int?
    /// The number of bytes of the incomplete line that have been searched for an LF.
    private var scannedBytes = 0

    public init() {}

    /// Removes the next complete reply from `buffer`; nil if more bytes are needed.
    ///
    /// - Parameter buffer: the bytes that the last call has left in it, followed by newly received ones.
    /// - Throws: if the stream violates the protocol. The decoder and the buffer are unusable afterwards.
    public mutating func next(in buffer: inout ByteBuffer) throws(MalformedReply) -> Frame? {
        while let kind = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) {
            guard let line = try lineLength(in: buffer) else { return nil }
            let element: ReplyElement
            if kind == UInt8(ascii: "*") {
                guard missing == nil else { throw MalformedReply(.nested) }
                let count = try number(in: buffer, line, atMost: ReplyFrameDecoder.elementsMaximum)
                skip(line, of: &buffer)
                if count == 0 { return .list([]) }
                missing = count
                continue
            } else if kind == ReplyElement.Kind.bulk.rawValue {
                guard let bulk = try removeBulk(line, of: &buffer) else { return nil }
                element = bulk
            } else {
                guard let known = ReplyElement.Kind(rawValue: kind),
                    let bytes = buffer.getSlice(at: buffer.readerIndex + 1, length: line.content - 1)
                else { throw MalformedReply(.kind) }
                skip(line, of: &buffer)
                element = ReplyElement(kind: known, bytes: bytes)
            }
            guard let count = missing else { return .single(element) }
            elements.append(element)
            elementBytes += element.bytes.readableBytes
            guard elementBytes <= ReplyFrameDecoder.listBytesMaximum else { throw MalformedReply(.listTooLong) }
            missing = count - 1
            if count > 1 { continue }
            missing = nil
            defer {
                elements = []
                elementBytes = 0
            }
            return .list(elements)
        }
        return nil
    }

    /// The length of a line with its end, and without.
    private typealias Line = (whole: Int, content: Int)

    private mutating func lineLength(in buffer: ByteBuffer) throws(MalformedReply) -> Line? {
        let start = scannedBytes
        let found = buffer.withUnsafeReadableBytes { bytes -> Line? in
            guard let lineFeed = bytes.firstPosition(of: UInt8(ascii: "\n"), from: start) else { return nil }
            let endsWithCR = lineFeed > 0 && bytes[lineFeed - 1] == UInt8(ascii: "\r")
            return (lineFeed + 1, endsWithCR ? lineFeed - 1 : lineFeed)
        }
        guard (found?.content ?? buffer.readableBytes) <= ReplyFrameDecoder.lineBytesMaximum else {
            throw MalformedReply(.lineTooLong)
        }
        // An empty line has no first byte, which is the reply's kind.
        if let found, found.content < 1 { throw MalformedReply(.kind) }
        scannedBytes = found == nil ? buffer.readableBytes : scannedBytes
        return found
    }

    private mutating func skip(_ line: Line, of buffer: inout ByteBuffer) {
        buffer.moveReaderIndex(forwardBy: line.whole)
        scannedBytes = 0
    }

    private func number(
        in buffer: ByteBuffer,
        _ line: Line,
        atMost maximum: Int
    ) throws(MalformedReply) -> Int {
        let number = buffer.withUnsafeReadableBytes { bytes in
            UnsafeRawBufferPointer(rebasing: bytes[1..<line.content]).plainNumber
        }
        guard let number, number <= maximum else { throw MalformedReply(.length) }
        return number
    }

    /// Removes a bulk string once all of it is received.
    private mutating func removeBulk(_ line: Line, of buffer: inout ByteBuffer) throws(MalformedReply) -> ReplyElement?
    {
        let length = try number(in: buffer, line, atMost: ReplyFrameDecoder.lineBytesMaximum)
        guard buffer.readableBytes >= line.whole + length + 2 else {
            // The next call decodes the bulk string's first line again, which is short.
            return nil
        }
        guard let bytes = buffer.getSlice(at: buffer.readerIndex + line.whole, length: length),
            buffer.getString(at: buffer.readerIndex + line.whole + length, length: 2) == "\r\n"
        else { throw MalformedReply(.length) }
        buffer.moveReaderIndex(forwardBy: line.whole + length + 2)
        scannedBytes = 0
        return ReplyElement(kind: .bulk, bytes: bytes)
    }
}
