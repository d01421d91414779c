/// Splits a CSV file into records, by RFC 4180: fields between separators, in double quotes where they contain a
/// separator, a quote or a line end; a quote within them is doubled. Lines end with CRLF or LF.
///
/// The separator is the first comma, semicolon or tab of the first line: spreadsheets write semicolons where the comma
/// is part of numbers. Blanks around a field do not belong to it, a byte order mark is skipped, and so are lines
/// without a value.
///
/// It reads as much as one record needs, and holds one piece of the file.
public struct CSVReader {
    public struct Record: Equatable {
        /// The number of the line in which it begins, from 1.
        public var line: Int
        /// The values of the fields; empty if the record has a problem.
        public var fields: [String]
        /// The bytes of the record in the file, without the line end.
        public var bytes: [UInt8]
        /// What is wrong with the record's form, and what to do; nil for a well-formed record.
        public var problem: String?
    }

    /// The reason why the file cannot be read any further.
    public struct Failure: Error, Equatable, CustomStringConvertible {
        public var line: Int
        public var text: String

        public var description: String { "line \(line): \(text)" }
    }

    /// The most bytes of a record. A longer one probably has quotes that are not closed.
    public static let recordBytesMaximum = 65_536

    /// Reads the next piece of the file; empty at its end.
    private let read: () throws -> [UInt8]
    private var buffer: [UInt8] = []
    /// The position of the first byte that belongs to no record yet.
    private var position = 0
    private var line = 1
    private var isAtEnd = false
    private var separator: UInt8?

    /// - Parameter read: reads the next piece of the file, of any size; empty at its end.
    public init(_ read: @escaping () throws -> [UInt8]) {
        self.read = read
    }

    /// Reads the next record; nil at the end of the file.
    ///
    /// - Throws: `Failure`, or an error of `read`.
    public mutating func next() throws -> Record? {
        let separator = try separator ?? begin()
        while true {
            var scan = RecordScan(begin: position, line: line, separator: separator)
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
            if scan.problem == nil, scan.fields.allSatisfy(\.isEmpty) { continue }
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

    /// Skips the byte order mark and chooses the separator.
    private mutating func begin() throws -> UInt8 {
        let separators = [RecordScan.comma, UInt8(ascii: ";"), RecordScan.tab]
        while !isAtEnd, buffer.count <= CSVReader.recordBytesMaximum, !buffer.contains(RecordScan.lineFeed) {
            try readMore()
        }
        if buffer.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
        let first = buffer.prefix { $0 != RecordScan.lineFeed }.first { separators.contains($0) } ?? RecordScan.comma
        separator = first
        return first
    }
}

/// The search for the end of one record. It continues where it stopped when there are more bytes.
private struct RecordScan {
    private enum State {
        /// The scan is at the beginning of a field. Can transition to: plain, quoted, and at the record's end to done.
        case fieldBegin
        /// The scan is in a plain field. Can transition to: quoted if there were only blanks, fieldBegin, malformed,
        /// done.
        case plain
        /// The scan is between the quotes of a field. Can transition to: quote.
        case quoted
        /// The scan is after a quote in a quoted field, which closes it unless another follows. Can transition to:
        /// quoted, closed, fieldBegin, malformed, done.
        case quote
        /// The scan is after a closed field and a blank. Can transition to: fieldBegin, malformed, done.
        case closed
        /// The form is wrong, and the scan goes to the end of the line. Can transition to: done.
        case malformed
        case done
    }

    static let comma = UInt8(ascii: ","), tab = UInt8(ascii: "\t"), lineFeed = UInt8(ascii: "\n")
    private static let quote = UInt8(ascii: "\""), carriageReturn = UInt8(ascii: "\r")

    let line: Int
    private let separator: UInt8
    private(set) var fields: [String] = []
    private(set) var problem: String?
    private(set) var lineEnds = 0
    /// The end of the record, without its line end.
    private(set) var end: Int
    /// The beginning of the next record.
    private(set) var position: Int
    private(set) var isUnclosed = false

    private var state = State.fieldBegin
    private var field: [UInt8] = []

    init(begin: Int, line: Int, separator: UInt8) {
        (position, end, self.line, self.separator) = (begin, begin, line, separator)
    }

    /// Adapts to a buffer that has lost bytes at its beginning.
    mutating func move(by offset: Int) {
        position += offset
        end += offset
    }

    /// - Returns: false if the record does not end in `bytes`, and the file goes on.
    mutating func run(_ bytes: [UInt8], isAtEnd: Bool) -> Bool {
        while position < bytes.count {
            let byte = bytes[position]
            // Only the next byte shows whether a CR belongs to a line end.
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
        case .fieldBegin, .plain:
            if byte == separator {
                endField()
            } else if byte != RecordScan.quote {
                state = .plain
                field.append(byte)
            } else if field.allSatisfy(RecordScan.isBlank) {
                state = .quoted
                field.removeAll(keepingCapacity: true)
            } else {
                fail("a quote stands within a field; put the whole field into quotes, and double the quote")
            }
        case .quoted:
            if byte == RecordScan.quote { state = .quote } else { field.append(byte) }
        case .quote, .closed:
            if byte == separator {
                endField()
            } else if RecordScan.isBlank(byte) {
                state = .closed
            } else if byte == RecordScan.quote, state == .quote {
                field.append(byte)
                state = .quoted
            } else {
                fail("something follows the closing quote of a field; double a quote that belongs to the field")
            }
        case .malformed, .done: break
        }
    }

    /// A tab is a blank only where it is not the separator, which callers compare first.
    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == tab
    }

    private mutating func endField() {
        let end = field.lastIndex { !RecordScan.isBlank($0) } ?? -1
        guard let text = String(validating: field[...end].drop(while: RecordScan.isBlank), as: UTF8.self) else {
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
