import Testing

@testable import OperatorConsole

@Suite("The models or members with the most messages")
struct TopPartsTests {
    private func part(
        _ name: String,
        _ label: String?,
        used: Int,
        accounts: Int,
        account: String?
    ) -> TopPartsTable.Part {
        TopPartsTable.Part(
            name: name,
            label: label,
            period: "2026-03",
            used: used,
            held: 2,
            accounts: accounts,
            blocked: 1,
            account: account
        )
    }

    @Test("are a table, or lists on a narrow terminal; JSON has null for what is absent")
    func table() throws {
        let table = TopPartsTable([
            part("gpt-5*", "Large \u{1B}models", used: 12_345, accounts: 40, account: nil),
            part("7f1c0a52", nil, used: 7, accounts: 1, account: "ada"),
        ])
        #expect(
            table.text(width: nil) == """
                name      label          period     used  held  accounts  blocked  account
                gpt-5*    Large  models  2026-03  12,345     2        40        1  -
                7f1c0a52  -              2026-03       7     2         1        1  ada
                """
        )
        #expect(table.text(width: 30).contains("accounts  40\n") && !table.text(width: 30).contains("account   -"))
        #expect(try table.parts[0].jsonLine().contains(#""account":null"#))
        #expect(try json(try table.parts[1].jsonLine(), "used") == "7")
    }
}
