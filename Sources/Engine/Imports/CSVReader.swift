/// Splits a CSV file into records, by RFC 4180: fields between commas, in double quotes where they contain a comma, a
/// quote or a line end; a quote within them is doubled. Lines end with CRLF or LF. A byte order mark is skipped, and so
/// are empty lines.
///
/// Reads as much as one record needs, and holds one piece of the file.
public struct CSVReader {
    public struct Record: Equatable {
        /// The number of the line in which it begins, from 1.
        public var line: Int
        /// Empty if the record has a problem.
        public var fields: [String]
        /// As they are in the file, without the line end.
        public var bytes: [UInt8]
        /// What is wrong with its form, and what to do; nil for a well-formed record.
        public var problem: String?
    }

    /// The file cannot be read any further.
    public struct Failure: Error, Equatable, CustomStringConvertible {
        public var line: Int
        public var text: String

        public var description: String { "line \(line): \(text)" }
    }

    /// A longer record is probably one whose quotes are not closed.
    public static let recordBytesMaximum = 65_536

    /// Empty at the end of the file.
    private let read: () throws -> [UInt8]
    private var buffer: [UInt8] = []
    /// Of the first byte that belongs to no record yet.
    private var position = 0
    private var line = 1
    private var isAtEnd = false
    private var hasBegun = false

    /// - Parameter read: the next piece of the file, of any size; empty at its end.
    public init(_ read: @escaping () throws -> [UInt8]) {
        self.read = read
    }

    /// Nil at the end of the file.
    ///
    /// - Throws: `Failure`, or an error of `read`.
    public mutating func next() throws -> Record? {
        try skipByteOrderMark()
        while true {
            var scan = RecordScan(begin: position, line: line)
            while !scan.run(buffer, isAtEnd: isAtEnd) {
                guard scan.position - position <= CSVReader.recordBytesMaximum else {
                    throw Failure(
                        line: line,
                        text:
                            "a record is longer than \(CSVReader.recordBytesMaximum) bytes; close the quotes of its fields"
                    )
                }
                let removed = position
                try readMore()
                scan.move(by: -removed)
            }
            guard scan.end > position || scan.position > position else { return nil }
            let bytes = Array(buffer[position..<scan.end])
            position = scan.position
            line += scan.lineEnds
            if scan.isUnclosed {
                throw Failure(line: scan.line, text: "the quotes of a field are not closed before the end of the file")
            }
            if bytes.isEmpty { continue }
            return Record(line: scan.line, fields: scan.fields, bytes: bytes, problem: scan.problem)
        }
    }

    private mutating func readMore() throws {
        buffer.removeFirst(position)
        position = 0
        let more = try read()
        if more.isEmpty { isAtEnd = true }
        buffer += more
    }

    private mutating func skipByteOrderMark() throws {
        guard !hasBegun else { return }
        hasBegun = true
        while buffer.count < 3, !isAtEnd { try readMore() }
        if buffer.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }
}

/// The search for the end of one record. It continues where it stopped when there are more bytes.
private struct RecordScan {
    private enum State {
        /// At the first byte of a field. Can transition to: plain, quoted, and at the end of a record to done.
        case fieldBegin
        /// In a field without quotes. Can transition to: fieldBegin, malformed, done.
        case plain
        /// Between the quotes of a field. Can transition to: quote.
        case quoted
        /// After a quote in a quoted field, which closes it unless another follows. Can transition to: quoted,
        /// fieldBegin, malformed, done.
        case quote
        /// The form is wrong: up to the end of the line. Can transition to: done.
        case malformed
        case done
    }

    private static let comma = UInt8(ascii: ","), quote = UInt8(ascii: "\"")
    private static let lineFeed = UInt8(ascii: "\n"), carriageReturn = UInt8(ascii: "\r")

    let line: Int
    private(set) var fields: [String] = []
    private(set) var problem: String?
    private(set) var lineEnds = 0
    /// Where the record ends, without its line end.
    private(set) var end: Int
    /// Where the next one begins.
    private(set) var position: Int
    private(set) var isUnclosed = false

    private var state = State.fieldBegin
    private var field: [UInt8] = []

    init(begin: Int, line: Int) {
        (position, end, self.line) = (begin, begin, line)
    }

    /// The buffer lost bytes at its beginning.
    mutating func move(by offset: Int) {
        position += offset
        end += offset
    }

    /// - Returns: false if the record does not end in `bytes`, and the file goes on.
    mutating func run(_ bytes: [UInt8], isAtEnd: Bool) -> Bool {
        while position < bytes.count {
            let byte = bytes[position]
            // Whether a CR belongs to a line end is known with the next byte.
            let isCRLF =
                byte == RecordScan.carriageReturn
                && position + 1 < bytes.count && bytes[position + 1] == RecordScan.lineFeed
            if byte == RecordScan.carriageReturn, position + 1 == bytes.count, !isAtEnd { return false }
            if state != .quoted, byte == RecordScan.lineFeed || isCRLF {
                end = position
                position += isCRLF ? 2 : 1
                lineEnds += 1
                finish()
                return true
            }
            if byte == RecordScan.lineFeed { lineEnds += 1 }
            take(byte)
            position += 1
        }
        guard isAtEnd else { return false }
        end = position
        isUnclosed = state == .quoted
        finish()
        return true
    }

    private mutating func take(_ byte: UInt8) {
        switch state {
        case .fieldBegin:
            if byte == RecordScan.quote {
                state = .quoted
            } else if byte == RecordScan.comma {
                endField()
            } else {
                state = .plain
                field.append(byte)
            }
        case .plain:
            if byte == RecordScan.comma {
                endField()
            } else if byte == RecordScan.quote {
                fail("a quote stands within a field; put the whole field into quotes, and double the quote")
            } else {
                field.append(byte)
            }
        case .quoted:
            if byte == RecordScan.quote { state = .quote } else { field.append(byte) }
        case .quote:
            if byte == RecordScan.quote {
                field.append(byte)
                state = .quoted
            } else if byte == RecordScan.comma {
                endField()
            } else {
                fail("something follows the closing quote of a field; double a quote that belongs to the field")
            }
        case .malformed, .done: break
        }
    }

    private mutating func endField() {
        guard let text = String(validating: field, as: UTF8.self) else {
            return fail("field \(fields.count + 1) is not UTF-8; save the file as UTF-8")
        }
        fields.append(text)
        field.removeAll(keepingCapacity: true)
        state = .fieldBegin
    }

    private mutating func fail(_ text: String) {
        problem = text
        fields = []
        state = .malformed
    }

    private mutating func finish() {
        if state != .malformed { endField() }
        if problem == nil { state = .done } else { fields = [] }
    }
}
