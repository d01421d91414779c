import Testing
import Usage

@testable import LineProtocol

@Suite("Decoded field lines")
struct FieldLineTests {
    @Test("Quotes and backslashes are removed")
    func quotes() {
        let line = FieldLine("+OK a=1 b=\"two words\" c=\"\\\"\\\\\" d=\"\" e=f=g\r\n")
        #expect(line?.status == "OK")
        #expect(line?.fields.map(\.name) == ["a", "b", "c", "d", "e"])
        #expect(line?.fields.map(\.value) == ["1", "two words", "\"\\", "", "f=g"])
        #expect(line?["b"] == "two words")
        #expect(line?["z"] == nil)
    }

    @Test("The line end and all fields are optional")
    func bare() {
        for text in ["+OK", "+OK\n", "+OK\r\n"] { #expect(FieldLine(text) == FieldLine(status: "OK", fields: [])) }
    }

    @Test(
        "A line of another form is refused",
        arguments: [
            "", "OK", "-ERR unknown", "+", "+ok", "+OK ", "+OK  a=1", "+OK a", "+OK =1", "+OK a=", "+OK a=1 a=2",
            "+OK a=\"", "+OK a=\"1", "+OK a=\"\\n\"", "+OK a=\"\\", "+OK a=\"1\"b=2", "+OK a=1\"", "+OK a=1\\",
            "+OK A=1",
        ]
    )
    func refused(text: String) { #expect(FieldLine(text) == nil) }
}
