import NIOCore

/// A reply that is not of the protocol. What follows it cannot be told apart.
public struct MalformedReply: Error, Sendable, Equatable, CustomStringConvertible {
    enum Fault: Equatable {
        /// A first byte that is none of the protocol's.
        case kind
        /// A length or a count that cannot be meant.
        case length
        case lineTooLong
        case listTooLong
        case nested
        case fieldLine
        case value(of: String)
        case list
    }

    let fault: Fault

    init(_ fault: Fault) {
        self.fault = fault
    }

    public var description: String {
        let what =
            switch fault {
            case .kind: "a reply begins with a byte that means nothing"
            case .length: "a reply has a length that cannot be meant"
            case .lineTooLong: "a line of a reply is longer than \(ReplyFraming.lineMaximum) bytes"
            case .listTooLong: "a list of a reply is longer than \(ReplyFraming.listBytesMaximum) bytes"
            case .nested: "a reply has a list within a list"
            case .fieldLine: "a reply lacks a field, or is no line of fields"
            case .value(let name): "a reply's field \(name) has a value that is not known"
            case .list: "a reply has a list where none belongs, or the other way round"
            }
        return "\(what); is it another version, or another service?"
    }
}

/// One line or bulk string of a reply, without what frames it.
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

/// Finds the replies in what a service sends, however the network has cut it.
///
/// Knows what Headroom sends: lines, lists of lines, and the arrays of bulk strings of publish and subscribe. Lists are
/// not nested.
public struct ReplyFraming: Sendable {
    public enum Frame: Sendable, Equatable {
        case single(ReplyElement)
        case list([ReplyElement])
    }

    /// No service sends more, and whoever does is not waited for.
    public static let lineMaximum = 65_536
    static let elementsMaximum = 65_536
    /// Of a list; the longest that is sent, a history of a hundred years, has a quarter of a million.
    static let listBytesMaximum = 8_388_608

    private var elements: [ReplyElement] = []
    private var elementBytes = 0
    /// Of the list that is being read; nil between lists.
    private var missing: Int?
    /// So many bytes of the line that has begun are known to hold no LF.
    private var scannedBytes = 0

    public init() {}

    /// Takes the next complete reply out of `buffer`, or nothing when there is none yet.
    ///
    /// - Parameter buffer: what has come and was not taken before; more is appended to it between calls.
    /// - Throws: after which nothing of the buffer means anything.
    public mutating func next(in buffer: inout ByteBuffer) throws(MalformedReply) -> Frame? {
        while let kind = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) {
            guard let line = try lineLength(in: buffer) else { return nil }
            let element: ReplyElement
            if kind == UInt8(ascii: "*") {
                guard missing == nil else { throw MalformedReply(.nested) }
                let count = try number(in: buffer, line, atMost: ReplyFraming.elementsMaximum)
                skip(line, of: &buffer)
                if count == 0 { return .list([]) }
                missing = count
                continue
            } else if kind == ReplyElement.Kind.bulk.rawValue {
                guard let bulk = try takeBulk(line, of: &buffer) else { return nil }
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
            guard elementBytes <= ReplyFraming.listBytesMaximum else { throw MalformedReply(.listTooLong) }
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

    /// A line's length with its end, and without.
    private typealias Line = (whole: Int, content: Int)

    private mutating func lineLength(in buffer: ByteBuffer) throws(MalformedReply) -> Line? {
        let start = scannedBytes
        let found = buffer.withUnsafeReadableBytes { bytes -> Line? in
            guard let lineFeed = bytes.firstPosition(of: UInt8(ascii: "\n"), from: start) else { return nil }
            let endsWithCR = lineFeed > 0 && bytes[lineFeed - 1] == UInt8(ascii: "\r")
            return (lineFeed + 1, endsWithCR ? lineFeed - 1 : lineFeed)
        }
        guard (found?.content ?? buffer.readableBytes) <= ReplyFraming.lineMaximum else {
            throw MalformedReply(.lineTooLong)
        }
        // A line that is only an end has no first byte that could say what it is.
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

    /// Nothing of a bulk string is taken before all of it is there.
    private mutating func takeBulk(_ line: Line, of buffer: inout ByteBuffer) throws(MalformedReply) -> ReplyElement? {
        let length = try number(in: buffer, line, atMost: ReplyFraming.lineMaximum)
        guard buffer.readableBytes >= line.whole + length + 2 else {
            // Its first line is looked for again; it is short.
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
