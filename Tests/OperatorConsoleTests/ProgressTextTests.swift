import OperatorConsole
import Testing

@Suite("Progress of long work")
struct ProgressTextTests {
    @Test("says how much is done, and how long the rest takes at the rate of this run")
    func lines() {
        let text = ProgressText(total: 4_096)
        #expect(text.line(done: 1_024, "1200 rows moved", elapsed: .seconds(14)) == "25 %, 1200 rows moved, 0:42 left")
        #expect(text.line(done: 1, "x", elapsed: .seconds(2)) == "0 %, x, 2:16:30 left")
        #expect(text.line(done: 2_048, "x", elapsed: .seconds(65)) == "50 %, x, 1:05 left")
        let resumed = ProgressText(total: 100, doneBefore: 50)
        #expect(resumed.line(done: 75, "x", elapsed: .seconds(9)) == "75 %, x, 0:09 left")
    }

    @Test("says the numbers and the rate of this run")
    func rates() {
        let text = ProgressText(total: 10_000, doneBefore: 1_000)
        #expect(
            text.line(done: 3_700, of: "rows", elapsed: .seconds(30))
                == "37 %, 3700 of 10000 rows, 90 a second, 1:10 left"
        )
        #expect(text.line(done: 1_000, of: "rows", elapsed: .seconds(3)) == "10 %, 1000 of 10000 rows")
        #expect(text.line(done: 1_001, of: "rows", elapsed: .seconds(3)) == "10 %, 1001 of 10000 rows, 7:29:57 left")
    }

    @Test("says what is done where nobody knows the total")
    func withoutTotal() {
        let text = ProgressText(total: nil)
        #expect(text.line(done: 3_000, of: "keys deleted", elapsed: .seconds(2)) == "3000 keys deleted, 1500 a second")
        #expect(text.line(done: 0, of: "keys deleted", elapsed: .zero) == "0 keys deleted")
        #expect(text.line(done: 3, "applying a file", elapsed: .seconds(9)) == "applying a file")
    }

    @Test("says nothing about the rest before there is a rate, and at the end")
    func ends() {
        let text = ProgressText(total: 10)
        #expect(text.line(done: 0, "begun", elapsed: .seconds(3)) == "0 %, begun")
        #expect(text.line(done: 10, "all", elapsed: .seconds(3)) == "100 %, all")
        #expect(ProgressText(total: 0).line(done: 0, "nothing", elapsed: .zero) == "100 %, nothing")
    }
}
