import Testing
import Usage

@testable import Engine

@Suite("Rows of an import")
struct ImportRowTests {
    private static let id = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
    private static let plans = [
        "paid": ImportRowDecoder.PlanKind(cycle: "monthly"), "trial": ImportRowDecoder.PlanKind(cycle: "trial"),
        "free": ImportRowDecoder.PlanKind(cycle: "lifetime"),
    ]

    private func decoder(_ header: String, namespace: UserNamespace? = nil) throws -> ImportRowDecoder {
        ImportRowDecoder(
            columns: try ImportColumns(record(header)),
            plans: Self.plans,
            namespace: namespace,
            isPeriod: { $0 <= "2026-11" || $0 == "trial" }
        )
    }

    private func record(_ line: String, number: Int = 1) -> CSVReader.Record {
        let fields = line.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        return CSVReader.Record(line: number, fields: fields, bytes: Array(line.utf8), problem: nil)
    }

    /// The columns of the problems of a line.
    private func columns(_ header: String, _ line: String) throws -> [String?] {
        let (row, problems) = try decoder(header).row(record(line, number: 7))
        #expect((row == nil) == !problems.isEmpty)
        #expect(problems.allSatisfy { $0.line == 7 })
        return problems.map(\.column)
    }

    @Test("have their values under the names of the first line, in any order")
    func values() throws {
        let header = "used,user,period,plan,limit,anchor,state,started,expires,grace_until"
        let line = "412,\(Self.id),2026-10,paid,900,15,grace_period,2026-01-02,2027-01-02T03:04:05Z,2027-02-01"
        let (row, problems) = try decoder(header).row(record(line))
        #expect(problems == [])
        let user = try #require(UserID(Self.id))
        let expected = ImportRow(
            line: 1,
            user: user,
            plan: "paid",
            state: "grace_period",
            started: Instant("2026-01-02")?.microsecondsSince1970,
            expires: Instant("2027-01-02T03:04:05Z")?.microsecondsSince1970,
            graceUntil: Instant("2027-02-01")?.microsecondsSince1970,
            anchorDay: 15,
            period: "2026-10",
            used: 412,
            limit: .set(900)
        )
        #expect(row == expected)
    }

    @Test("leave out what is empty or has no column")
    func defaults() throws {
        let user = try #require(UserID(Self.id))
        #expect(try decoder("user,plan,used").row(record("\(Self.id),,")).row == ImportRow(line: 1, user: user))
        let unlimited = try decoder("limit,user").row(record("unlimited,\(Self.id)")).row
        #expect(unlimited?.limit == .set(nil))
    }

    @Test("name users as the service does")
    func names() throws {
        let namespace = UserNamespace(try #require(UserID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")))
        let row = try decoder("user,used", namespace: namespace).row(record("auth0|42,3")).row
        #expect(row?.user == UserID("auth0|42", in: namespace))
        #expect(try columns("user,used", "auth0|42,3") == ["user"])
    }

    @Test("may be about a model or a member of the user")
    func parts() throws {
        let namespace = UserNamespace(try #require(UserID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")))
        let decoder = try decoder("user,model,member,used", namespace: namespace)
        #expect(try decoder.row(record("sales,gpt-5,,7")).row?.part == .model("gpt-5"))
        let ann = try #require(UserID("ann", in: namespace))
        #expect(try decoder.row(record("sales,,ann,7")).row?.part == .member(ann))
        #expect(try decoder.row(record("sales,,,7")).row?.part == nil)
        #expect(try columns("user,model,member,used", "\(Self.id),gpt-5,\(Self.id),7") == ["member"])
        #expect(try columns("user,model,used", "\(Self.id),gpt 5,7") == ["model"])
        #expect(try columns("user,member,used", "\(Self.id),ann,7") == ["member"])
        #expect(try columns("user,model,limit", "\(Self.id),gpt-5,7") == ["limit"])
    }

    @Test("are refused with the column of each bad value")
    func problems() throws {
        let id = Self.id
        for used in [
            "-1", "1.5", "1.", ".0", "1.0.0", "1e3", "+1", "2147483648", "0x1", "many", "\\N", "NULL", "NaN",
        ] {
            #expect(try columns("user,used", "\(id),\(used)") == ["used"], "\(used)")
        }
        for limit in ["-1", "none", "+5", "2147483648"] {
            #expect(try columns("user,limit", "\(id),\(limit)") == ["limit"], "\(limit)")
        }
        #expect(try columns("user,plan", "\(id),gold") == ["plan"])
        #expect(try columns("user,used,period", "\(id),1,2026-12") == ["period"])
        #expect(try columns("user,used,period", "\(id),1,November") == ["period"])
        #expect(try columns("user,plan,state", "\(id),paid,trial") == ["state"])
        #expect(try columns("user,plan,state", "\(id),trial,active") == ["state"])
        #expect(try columns("user,plan,anchor", "\(id),paid,32") == ["anchor"])
        #expect(try columns("user,plan,expires", "\(id),paid,tomorrow") == ["expires"])
        #expect(try columns("user,plan,expires,used", "\(id),,2026-12-01,1") == ["expires"])
        #expect(try columns("user,plan,used", "nobody,gold,x") == ["user", "plan", "used"])
        #expect(try columns("user,plan,used", "\(id),paid") == [nil])
    }

    @Test("may have the forms in which programs export numbers and instants")
    func exportedForms() throws {
        let header = "User,Plan,USED,limit,started,expires"
        let forms = "2026-11-24 or 2026-11-24T09:30:00Z"
        for (number, expected) in [("412.0", 412), ("412.00", 412), ("0.0", 0), ("007", 7)] as [(String, Int32)] {
            let row = try decoder(header).row(record("\(Self.id),paid,\(number),\(number),,")).row
            #expect(row?.used == expected && row?.limit == .set(expected), "\(number)")
        }
        for (text, expected) in [
            ("2026-03-05 09:30:00+00", "2026-03-05T09:30:00Z"),
            ("2026-03-05 09:30:00.123456+00", "2026-03-05T09:30:00.123456Z"),
            ("2026-03-05 10:30:00+0100", "2026-03-05T09:30:00Z"), ("2026-03-05T06:00:00-03:30", "2026-03-05T09:30:00Z"),
            ("2026-03-05 09:30:00 UTC", "2026-03-05T09:30:00Z"), ("2026-03-05 09:30:00Z", "2026-03-05T09:30:00Z"),
        ] {
            let row = try decoder(header).row(record("\(Self.id),paid,,,\(text),\(text)")).row
            let instant = try #require(Instant(expected)).microsecondsSince1970
            #expect(row?.started == instant && row?.expires == instant, "\(text)")
        }
        for text in ["2026-03-05 09:30:00", "2026-03-05T09:30:00.5"] {
            let problems = try decoder(header).row(record("\(Self.id),paid,,,\(text),")).problems
            #expect(problems.map(\.text) == ["has no time zone; export an offset or Z: \(forms)"])
        }
        for text in [
            "2026-03-05  09:30:00+00", "2026-03-05 09:30:00+1", "2026-03-05 09:30:00+00 UTC", "2026-03-05 UTC",
        ] {
            #expect(try columns(header, "\(Self.id),paid,,,\(text),") == ["started"], "\(text)")
        }
    }

    @Test("are refused with an advice where an export has a word for a missing value")
    func missingValues() throws {
        for word in ["\\N", "NULL", "null", "None", "NaN"] {
            let (row, problems) = try decoder("user,plan,used,limit").row(record("\(Self.id),\(word),\(word),\(word)"))
            #expect(row == nil)
            #expect(problems.map(\.column) == ["plan", "used", "limit"], "\(word)")
            #expect(problems.allSatisfy { $0.text.contains("export an empty field") })
        }
    }

    @Test("need a first line that names the columns")
    func headers() throws {
        for (header, text) in [
            ("user,count", "there is no such column"), ("user plan", "there is no such column"),
            ("user,plan,plan", "named twice"), ("plan,used", "user is missing"), ("user,period", "nothing to import"),
            (Self.id + ",paid", "there is no such column"),
        ] {
            let problem = #expect(throws: ImportProblem.self) { try ImportColumns(record(header)) }
            #expect(problem?.text.contains(text) == true, "\(header)")
        }
        #expect(throws: ImportProblem.self) { try ImportColumns(nil) }
    }

    @Test("are about one user, period, and model or member once in a file")
    func repetitions() throws {
        let decoder = try decoder("user,used,period,model")
        var rows: [ImportRow] = []
        for (line, (user, period)) in [
            (Self.id, ","), (Self.id, "2026-10,"), ("00000000-0000-4000-8000-000000000001", ","),
            (Self.id, "2026-10,"), (Self.id, ","), (Self.id, ",large"), (Self.id, ",small"), (Self.id, ",large"),
        ].enumerated() {
            let row = try decoder.row(record("\(user),1,\(period)", number: line + 2)).row
            rows.append(try #require(row))
        }
        var repeated = RepeatedRows()
        for row in rows { repeated.add(row) }
        var candidates = repeated.takeCandidates()
        #expect(!candidates.isEmpty)
        let problems = rows.compactMap { candidates.problem($0) }
        #expect(problems.map(\.line) == [5, 6, 9])
        #expect(problems.map(\.text).map { $0.prefix(7) } == ["line 3 ", "line 2 ", "line 7 "])
        #expect(problems.last?.text.contains("user and period and model") == true)
    }
}
