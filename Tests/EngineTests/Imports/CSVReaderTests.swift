import Testing

@testable import Engine

@Suite("CSV files")
struct CSVReaderTests {
    /// All records of a text, read in pieces of this size.
    private func records(_ text: String, pieces: Int = 1_000_000) throws -> [CSVReader.Record] {
        try records(Array(text.utf8), pieces: pieces)
    }

    private func records(_ bytes: [UInt8], pieces: Int) throws -> [CSVReader.Record] {
        var rest = bytes[...]
        var reader = CSVReader {
            defer { rest = rest.dropFirst(pieces) }
            return Array(rest.prefix(pieces))
        }
        var records: [CSVReader.Record] = []
        while let record = try reader.next() { records.append(record) }
        return records
    }

    private func fields(_ text: String) throws -> [[String]] {
        let whole = try records(text)
        for size in 1...3 { #expect(try records(text, pieces: size) == whole, "in pieces of \(size)") }
        return whole.map(\.fields)
    }

    @Test("are split at commas and line ends, byte by byte as at once")
    func plain() throws {
        #expect(try fields("a,b\nc,d\n") == [["a", "b"], ["c", "d"]])
        #expect(try fields("a,b\r\nc,d\r\n") == [["a", "b"], ["c", "d"]])
        #expect(try fields("a,b\nc,d") == [["a", "b"], ["c", "d"]])
        #expect(try fields("a,,\n,b") == [["a", "", ""], ["", "b"]])
        #expect(try fields("ä,日\n") == [["ä", "日"]])
        #expect(try fields("a\rb,c\n") == [["a\rb", "c"]])
        #expect(try fields("") == [])
    }

    @Test("have commas, quotes and line ends within quotes")
    func quotes() throws {
        #expect(try fields("\"a,b\",\"c \"\"d\"\"\"\n") == [["a,b", "c \"d\""]])
        #expect(try fields("\"a\nb\r\nc\",d\r\ne,f") == [["a\nb\r\nc", "d"], ["e", "f"]])
        #expect(try fields("\"\",\"x\"\r\n") == [["", "x"]])
        #expect(try fields("a,\"b\"") == [["a", "b"]])
    }

    @Test("are separated by what separates the names of the first line")
    func separators() throws {
        #expect(try fields("a;b\n1,5;c\n") == [["a", "b"], ["1,5", "c"]])
        #expect(try fields("\u{FEFF}\"a\"\tb\r\n\tc;,d\r\n") == [["a", "b"], ["", "c;,d"]])
        #expect(try fields("a\n1;2\n") == [["a"], ["1;2"]])
    }

    @Test("have fields without the blanks around them")
    func blanks() throws {
        #expect(try fields("a , b\n c,\t\"d, e\" \t,f g \n") == [["a", "b"], ["c", "d, e", "f g"]])
    }

    @Test("may begin with a byte order mark, and have lines without a value")
    func skipped() throws {
        #expect(try fields("a,b\n,\n , \n\"\",\nc,d") == [["a", "b"], ["c", "d"]])
        #expect(try fields("\u{FEFF}a,b\n\n\r\nc,d\n\n") == [["a", "b"], ["c", "d"]])
        #expect(try fields("\u{FEFF}") == [])
    }

    @Test("have records that know their lines and their bytes")
    func places() throws {
        let found = try records("a,b\n\"c\nd\",e\r\n\nf,\"g\"\n", pieces: 2)
        #expect(found.map(\.line) == [1, 2, 5])
        #expect(found.map { String(decoding: $0.bytes, as: UTF8.self) } == ["a,b", "\"c\nd\",e", "f,\"g\""])
    }

    @Test("have problems of single records, after which the next one is read")
    func problems() throws {
        for text in ["a\"b,c\n", "\"a\"b,c\n", "\"a\" \"b\",c\n"] {
            let found = try records(text + "d,e\n", pieces: 1)
            #expect(found.map(\.fields) == [[], ["d", "e"]])
            #expect(found[0].problem?.contains("quote") == true)
            #expect(found[0].bytes == Array(text.utf8.dropLast()))
            #expect(found[1].line == 2)
        }
        let foreign = try records([UInt8(ascii: "a"), 0x2C, 0xE4, 0x0A, 0x62, 0x0A], pieces: 2)
        #expect(foreign[0].problem == "field 2 is not UTF-8; save the file as UTF-8")
        #expect(foreign[1].fields == ["b"])
    }

    @Test("cannot be read beyond quotes that are not closed")
    func unclosed() throws {
        let failure = CSVReader.Failure(
            line: 2,
            text: "the quotes of a field are not closed before the end of the file"
        )
        #expect(throws: failure) {
            try records("a,b\nc,\"d\ne,f\n")
        }
        let long = "a\n\"" + String(repeating: "x", count: 70_000)
        let other = #expect(throws: CSVReader.Failure.self) { try records(long, pieces: 4_096) }
        #expect(other?.line == 2)
    }
}
