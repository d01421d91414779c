import Postgres
import TestSupport
import Testing

/// A parameter is returned unchanged, and the server reads it as the intended value.
@Suite("Parameters and results")
struct ParametersTests {
    private func roundTrip(
        _ sql: String,
        _ append: @escaping @Sendable (inout Parameters) -> Void
    ) async throws -> QueryResult {
        let conninfo = try await TestServer.shared()
        return try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            var parameters = Parameters()
            append(&parameters)
            return try connection.query(sql, parameters, deadline: .now + waitLimit)
        }
    }

    @Test("single values are returned unchanged") func singleValues() async throws {
        let sql = "SELECT $1, $2, $3, $4, $5, $6, $1::text, $2::text, $6::text, 7::int2"
        let result = try await roundTrip(sql) { parameters in
            parameters.append(uuid: (high: 0x7f1c_0a52_3a51_4a7e, low: 0x9d55_0b6a_3f1f_7c11))
            parameters.append(int32: .min)
            parameters.append(int64: .max)
            parameters.append(bool: true)
            parameters.append(text: "é, \"quoted\" \\ and 🚢")
            parameters.append(bytes: [0, 1, 255])
        }
        #expect(result.rowCount == 1 && result.columnCount == 10 && result.affectedRows == 1)
        #expect(try result.uuid(0, 0) == (0x7f1c_0a52_3a51_4a7e, 0x9d55_0b6a_3f1f_7c11))
        #expect(try result.int32(0, 1) == .min)
        #expect(try result.int64(0, 2) == .max)
        #expect(try result.bool(0, 3))
        #expect(result.text(0, 4) == "é, \"quoted\" \\ and 🚢")
        #expect(Array(result.bytes(0, 5)) == [0, 1, 255])
        #expect(result.text(0, 6) == "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11")
        #expect(result.text(0, 7) == "-2147483648")
        #expect(result.text(0, 8) == "\\x0001ff")
        #expect(try result.int16(0, 9) == 7)
    }

    @Test("a null has a type and arrives as NULL") func nulls() async throws {
        let result = try await roundTrip("SELECT $1, $2, $3, $4, $5, $6, $7, pg_typeof($7)::text") { parameters in
            parameters.append(int32: nil)
            parameters.append(int64: nil)
            parameters.append(bool: nil)
            parameters.append(text: nil)
            parameters.append(timestamptz: nil)
            parameters.append(bytes: nil)
            parameters.appendNull(.uuidArray)
        }
        for column in 0..<7 { #expect(result.isNull(0, column)) }
        #expect(result.text(0, 7) == "uuid[]")
    }

    @Test("the empty text is not NULL") func emptyText() async throws {
        let result = try await roundTrip("SELECT $1, $2") { parameters in
            parameters.append(text: "")
            parameters.append(bytes: [])
        }
        #expect(!result.isNull(0, 0) && result.text(0, 0) == "")
        #expect(!result.isNull(0, 1) && result.bytes(0, 1).isEmpty)
    }

    static let instants: [(microseconds: Int64, text: String)] = [
        (0, "1970-01-01 00:00:00+00"),
        (-1, "1969-12-31 23:59:59.999999+00"),
        (946_684_800_000_000, "2000-01-01 00:00:00+00"),
        (1_795_253_400_123_456, "2026-11-21 09:30:00.123456+00"),
        (-30_000_000_000_000_000, "1019-05-04 18:40:00+00"),
        (.max, "infinity"),
        (.min, "-infinity"),
    ]

    @Test("an instant keeps its microseconds", arguments: instants)
    func timestamps(microseconds: Int64, text: String) async throws {
        let result = try await roundTrip("SELECT $1, $1::text, $2::text::timestamptz") { parameters in
            parameters.append(timestamptz: microseconds)
            parameters.append(text: text)
        }
        #expect(try result.timestamp(0, 0) == microseconds)
        #expect(result.text(0, 1) == text)
        #expect(try result.timestamp(0, 2) == microseconds)
    }

    @Test("an instant out of range saturates") func saturation() async throws {
        let result = try await roundTrip("SELECT $1::text, '294276-12-31'::timestamptz") { parameters in
            parameters.append(timestamptz: .min + 1)
        }
        #expect(result.text(0, 0) == "-infinity")
        #expect(try result.timestamp(0, 1) == .max)
    }

    @Test("arrays are returned unchanged") func arrays() async throws {
        let sql = "SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $2, $3, $4"
        let result = try await roundTrip(sql) { parameters in
            parameters.appendUUIDs(count: 2) { (high: 0, low: UInt64($0)) }
            parameters.appendInt64s(count: 3) { Int64($0) * 5_000_000_000 }
            parameters.appendInt32s(count: 2) { Int32($0) - 1 }
            parameters.appendTexts(count: 4) { ["a", nil, "", "ü,\""][$0] }
            parameters.appendTimestamps(count: 3) { [0, nil, .max][$0] }
            parameters.appendBools(count: 2) { $0 == 1 }
        }
        #expect(result.text(0, 0) == "{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001}")
        #expect(result.text(0, 1) == "{0,5000000000,10000000000}")
        #expect(result.text(0, 2) == "{-1,0}")
        #expect(result.text(0, 3) == "{a,NULL,\"\",\"ü,\\\"\"}")
        #expect(result.text(0, 4) == "{\"1970-01-01 00:00:00+00\",NULL,infinity}")
        #expect(result.text(0, 5) == "{f,t}")
        #expect(try result.int64s(0, 6) == [0, 5_000_000_000, 10_000_000_000])
        #expect(try result.int32s(0, 7) == [-1, 0])
        #expect(try result.texts(0, 8) == ["a", nil, "", "ü,\""])
    }

    @Test("an array of records is read as rows") func records() async throws {
        let sql = """
            SELECT array[record_send(row(1, 'a'::text, null::bigint)), record_send(row(2, ''::text, 3::bigint))],
                array[record_send(row(1, 'a'::text))], array[record_send(row(1, 2, 3)), null], array[row(1, 2, 3)], 1,
                array[]::bytea[], null::bytea[]
            """
        let result = try await roundTrip(sql) { _ in }
        let names: [StaticString] = ["number", "text", "other"]
        let rows = try #require(try result.records(0, 0, names))
        #expect(rows.rowCount == 2 && rows.columnCount == 3)
        let (number, text, other) = (try rows.column("number"), try rows.column("text"), try rows.column("other"))
        #expect(try rows.int32(0, number) == 1 && rows.text(0, text) == "a" && rows.isNull(0, other))
        #expect(try rows.int32(1, number) == 2 && rows.text(1, text) == "" && rows.int64(1, other) == 3)
        #expect(try result.records(0, 0, ["number"])?.columnCount == 1)
        for column in 1...4 {
            let error = #expect(throws: PostgresError.self) { try result.records(0, column, names) }
            #expect(error?.sqlState == .invalidStoredValue, "\(column)")
        }
        for column in 5...6 { #expect(try result.records(0, column, names) == nil) }
    }

    @Test("an empty array is not NULL") func emptyArrays() async throws {
        let result = try await roundTrip("SELECT $1, $2, cardinality($1), cardinality($3)") { parameters in
            parameters.appendInt64s(count: 0) { _ in 0 }
            parameters.appendTexts(count: 0) { _ in nil }
            parameters.appendUUIDs(count: 0) { _ in (0, 0) }
        }
        #expect(try !result.isNull(0, 0) && result.int64s(0, 0).isEmpty)
        #expect(try !result.isNull(0, 1) && result.texts(0, 1).isEmpty)
        #expect(try result.int32(0, 2) == 0 && result.int32(0, 3) == 0)
    }

    @Test("NULLs in an array are nil") func nullElements() async throws {
        let sql = "SELECT '{1,NULL,3}'::int4[], '{NULL}'::int8[], '[5:6]={7,8}'::int4[]"
        let result = try await roundTrip(sql) { _ in }
        #expect(try result.int32s(0, 0) == [1, nil, 3])
        #expect(try result.int64s(0, 1) == [nil])
        #expect(try result.int32s(0, 2) == [7, 8])
    }

    @Test(
        "A value of another type or length, and NULL, is an error that names the column",
        arguments: [
            "null::integer", "7::bigint", "7::smallint", "7.5::real", "'text'::text", "'2026-11-01'::date",
            "7::numeric",
        ]
    )
    func wrongType(sql: String) async throws {
        let result = try await roundTrip("SELECT \(sql) AS used, \(sql) = any (array[\(sql)])") { _ in }
        let reads: [(QueryResult) throws -> Void] = [
            { _ = try $0.int32(0, 0) },
            { _ = try $0.timestamp(0, 0) },
            { _ = try $0.uuid(0, 0) },
            { _ = try $0.bool(0, 0) },
            { _ = try $0.int64s(0, 0) },
            { _ = try $0.int32s(0, 0) },
            { _ = try $0.texts(0, 0) },
        ]
        for read in reads {
            let error = #expect(throws: PostgresError.self) { try read(result) }
            #expect(error?.sqlState == .invalidStoredValue)
            #expect(error?.message.hasPrefix("used is ") == true, "\(error?.message ?? "")")
        }
    }

    @Test("an array of another type is an error") func otherArrayType() async throws {
        let result = try await roundTrip("SELECT '{1,2}'::int4[], '{1,2}'::int8[], '{1,2}'::text[], '{1,2}'::float8[]")
        { _ in }
        for column in [0, 2, 3] { #expect(throws: PostgresError.self) { try result.int64s(0, column) } }
        for column in [1, 2, 3] { #expect(throws: PostgresError.self) { try result.int32s(0, column) } }
        for column in [0, 1, 3] { #expect(throws: PostgresError.self) { try result.texts(0, column) } }
    }

    @Test("an array of bigints is read as a whole, or not at all") func bigints() async throws {
        let sql = """
            SELECT '{}'::int8[], '{7,-8,9223372036854775807}'::int8[], '[5:6][1:2]={{1,2},{3,4}}'::int8[],
                '{1,NULL,3}'::int8[], null::int8[], '{1,2}'::int4[], '{{1}}'::text[], 12::int8
            """
        let result = try await roundTrip(sql) { _ in }
        func read(_ column: Int, _ elements: inout [Int64]) throws(PostgresError) {
            try result.forEachInt64(0, column) { elements.append($0) }
        }
        let whole: [[Int64]] = [[], [7, -8, .max], [1, 2, 3, 4]]
        for (column, expected) in whole.enumerated() {
            var elements: [Int64] = []
            try read(column, &elements)
            #expect(elements == expected)
        }
        for column in 3...7 {
            var elements: [Int64] = []
            let error = #expect(throws: PostgresError.self) { try read(column, &elements) }
            #expect(error?.sqlState == .invalidStoredValue && elements.isEmpty)
        }
    }

    @Test("the buffer grows") func growth() async throws {
        let conninfo = try await TestServer.shared()
        try await onThread {
            let connection = try DatabaseConnection.connect(conninfo)
            defer { connection.close() }
            let deadline = ContinuousClock.now + waitLimit
            try connection.prepare("sums", "SELECT sum(n)::int8 FROM unnest($1::int8[]) AS n", deadline: deadline)
            for count in [1, 100_000, 3] {
                var parameters = Parameters()
                parameters.appendInt64s(count: count) { Int64($0) }
                try connection.send(prepared: "sums", parameters)
                let result = try connection.awaitResult(until: deadline)
                #expect(try result?.int64(0, 0) == Int64(count) * Int64(count - 1) / 2)
            }
        }
    }
}
