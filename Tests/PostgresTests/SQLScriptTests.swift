import Testing

@testable import Postgres

@Suite struct SQLScriptTests {
    private func texts(_ script: String) -> [String] {
        SQLScript.statements(of: script).map { $0.text.split(separator: "\n").joined(separator: " ") }
    }

    @Test func semicolonsEndStatements() {
        #expect(texts("select 1;select 2") == ["select 1", "select 2"])
        #expect(texts(";; select 1; ; -- nothing\n") == [" select 1"])
        #expect(texts("").isEmpty)
    }

    @Test func theOffsetIsThatOfTheStatementsText() throws {
        let script = "-- ä\nselect 1; select 2"
        let second = try #require(SQLScript.statements(of: script).last)
        #expect(second.offset == 14)
        #expect(String(script.unicodeScalars.dropFirst(second.offset)) == second.text)
    }

    @Test(arguments: [
        "select ';'", "select 'it''s; fine'", "select \"a;b\"", "do $$ begin; end $$", "do $a_1$ ; $$ ; $a_1$",
        "select /* ; /* ; */ ; */ 1", "select 1 -- one; two\n",
    ])
    func semicolonsInQuotesAndCommentsDoNot(_ statement: String) {
        #expect(SQLScript.statements(of: "\(statement);select 2").map(\.text) == [statement, "select 2"])
    }

    @Test(arguments: ["select 'unfinished; ", "do $$ unfinished; ", "select \"unfinished; ", "select /* unfinished; "])
    func whatIsNotEndedGoesUpToTheEnd(_ script: String) {
        #expect(SQLScript.statements(of: script).map(\.text) == [script])
    }

    @Test func parametersAreNoDollarQuotes() {
        #expect(texts("select $1;select $2, a$b$;select 3") == ["select $1", "select $2, a$b$", "select 3"])
    }

    @Test func bodiesOfFunctionsInSQLHaveSemicolons() {
        let function = "create or replace function f() returns int begin atomic select case when true then 1 end; end"
        #expect(texts("\(function);select 2") == [function, "select 2"])
        #expect(texts("begin;select 1;end;select 2").count == 4)
    }

    @Test func charactersBeyondASCIIStay() {
        #expect(texts("select 'größer;kleiner'; select 2") == ["select 'größer;kleiner'", " select 2"])
    }
}
