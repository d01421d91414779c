import Testing

@testable import HTTPServer

@Suite("The header Date")
struct DateFieldTests {
    @Test(
        "has the format of RFC 9110",
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (1_709_208_000, "Thu, 29 Feb 2024 12:00:00 GMT"),
        ]
    )
    func text(second: Int, expected: String) { #expect(DateField.text(second) == expected) }
}
