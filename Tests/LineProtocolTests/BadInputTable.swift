import Usage

@testable import LineProtocol

extension BadInput {
    static let lineEnds = [
        BadInput("empty line", "\n", .nothing),
        BadInput("empty line with CRLF", "\r\n", .nothing),
        BadInput("spaces only", "   \r\n", .nothing),
        BadInput("tabs only", "\t\t\n", .nothing),
        BadInput("many empty lines", String(repeating: "\r\n\n", count: 100), .nothing),
        BadInput("empty array", "*0\r\n", .nothing),
        BadInput("CRCRLF alone", "\r\r\n", .failure(.badArg)),
        BadInput("CRCRLF after a request", "PING\r\r\n", .failure(.badArg)),
        BadInput("CR before a request", "\rPING\n", .failure(.badArg)),
        BadInput("CR between tokens", "PING\rPING\n", .failure(.badArg)),
    ]

    private static func echo(totalBytes: Int) -> String { "ECHO " + String(repeating: "x", count: totalBytes - 5) }

    static let sizes = [
        BadInput("exactly the limit", echo(totalBytes: 1_024) + "\n", .command(echoed(1_019))),
        BadInput("exactly the limit, CRLF", echo(totalBytes: 1_024) + "\r\n", .command(echoed(1_019))),
        BadInput(
            "exactly the limit, array",
            arrayRequest(["ECHO", String(repeating: "x", count: 1_019)]),
            .command(echoed(1_019))
        ),
        BadInput("limit + 1", echo(totalBytes: 1_025) + "\n", .fatal(.tooLong)),
        BadInput("limit + 1, CRLF", echo(totalBytes: 1_025) + "\r\n", .fatal(.tooLong)),
        BadInput("limit + 1, no end", echo(totalBytes: 1_025), .fatal(.tooLong)),
        BadInput("limit + 1, CR but no LF", echo(totalBytes: 1_024) + "\rx", .fatal(.tooLong)),
        BadInput("limit + 1 of spaces", String(repeating: " ", count: 1_025) + "\n", .fatal(.tooLong)),
        BadInput("limit + 1, array", arrayRequest(["ECHO", String(repeating: "x", count: 1_020)]), .fatal(.tooLong)),
        BadInput("limit + 1 in one element", "*1\r\n$1025\r\n", .fatal(.tooLong)),
        BadInput("4 KiB without LF", String(repeating: "x", count: 4_096), .fatal(.tooLong)),
        BadInput("16 tokens", "INFO" + String(repeating: " a", count: 15) + "\n", .command(.info)),
        BadInput("17 tokens", "INFO" + String(repeating: " a", count: 16) + "\n", .fatal(.tooLong)),
        BadInput("17 tokens, array", "*17\r\n", .fatal(.tooLong)),
        BadInput("the longest count", "*1048576\r\n", .fatal(.tooLong)),
        BadInput("the longest element", "*1\r\n$536870912\r\n", .fatal(.tooLong)),
    ]

    private static func echoed(_ count: Int) -> Command {
        .echo(text: EchoedBytes(Array(repeating: UInt8(ascii: "x"), count: count)))
    }

    /// `bytes` in the middle of a token, in both framings. The array is one of a verb that takes text only.
    private static func within(_ name: String, _ bytes: [UInt8], _ outcome: Outcome) -> [BadInput] {
        let inline = Array("ECHO a".utf8) + bytes + Array("b\n".utf8)
        let verb = if case .command = outcome { "ECHO" } else { "HELP" }
        let array = Array("*2\r\n$4\r\n\(verb)\r\n$\(bytes.count + 2)\r\na".utf8) + bytes + Array("b\r\n".utf8)
        return [BadInput(name, inline, outcome), BadInput("\(name), array", array, outcome)]
    }

    /// All but tab and LF, which are separators in a line.
    private static let controls = (UInt8(0)...0x1F).filter { $0 != 9 && $0 != 10 } + [0x7F]

    static let bytes: [BadInput] =
        controls.flatMap { within("control character \($0)", [$0], .failure(.badArg)) }
        + (UInt8(0x80)...0x9F).flatMap { within("C1 control \($0)", [0xC2, $0], .failure(.badArg)) }
        + [
            BadInput("tab in an array", arrayRequest(["HELP", "a\tb"]), .failure(.badArg)),
            BadInput("LF in an array", arrayRequest(["HELP", "a\nb"]), .failure(.badArg)),
            BadInput("LF in an array's verb", arrayRequest(["PING\n"]), .failure(.badArg)),
            BadInput("a terminal escape", "ECHO \u{1B}[2J\n", .failure(.badArg)),
        ]
        + within("overlong slash", [0xC0, 0xAF], .failure(.badArg))
        + within("overlong in three bytes", [0xE0, 0x80, 0xAF], .failure(.badArg))
        + within("overlong in four bytes", [0xF0, 0x80, 0x80, 0xAF], .failure(.badArg))
        + within("lone continuation", [0x80], .failure(.badArg))
        + within("truncated in two bytes", [0xC3], .failure(.badArg))
        + within("truncated in three bytes", [0xE2, 0x82], .failure(.badArg))
        + within("truncated in four bytes", [0xF0, 0x9F, 0x99], .failure(.badArg))
        + within("surrogate", [0xED, 0xA0, 0x80], .failure(.badArg))
        + within("beyond U+10FFFF", [0xF4, 0x90, 0x80, 0x80], .failure(.badArg))
        + within("0xF5", [0xF5, 0x80, 0x80, 0x80], .failure(.badArg))
        + within("0xFF", [0xFF], .failure(.badArg))
        + within("U+2028", [0xE2, 0x80, 0xA8], .command(.echo(text: "a\u{2028}b")))
        + within("U+00A0", [0xC2, 0xA0], .command(.echo(text: "a\u{A0}b")))
        + within("U+10FFFF", [0xF4, 0x8F, 0xBF, 0xBF], .command(.echo(text: "a\u{10FFFF}b")))
        + within("BOM", [0xEF, 0xBB, 0xBF], .command(.echo(text: "a\u{FEFF}b")))
        + [
            BadInput("BOM before a verb", "\u{FEFF}PING\n", .failure(.err)),
            BadInput("invalid UTF-8 at the line's end", Array("ECHO ".utf8) + [0xE2, 0x82, 0x0A], .failure(.badArg)),
            BadInput("invalid UTF-8 in a verb", [0x50, 0xFF, 0x0A], .failure(.badArg)),
        ]

    static let numbers: [BadInput] =
        [
            "0", "-1", "+1", "01", "00", "1e3", "0x1", "1.0", "1,0", "1_0", "1000001", "9223372036854775807",
            "9223372036854775808", "18446744073709551616", String(repeating: "9", count: 40), "١", "１", "½", "NaN",
            "infinity", "%s", "$1", "''",
        ].flatMap { [.line("CONSUME \(userText) \($0)"), .line("CHECK \(userText) \($0)")] }
        + ["0", "1201", "-1", "012", "9223372036854775808"].map { .line("HISTORY \(userText) \($0)") }
        + [
            BadInput("empty number", arrayRequest(["CONSUME", userText, ""]), .failure(.badArg)),
            BadInput("number and space", arrayRequest(["CONSUME", userText, "1 "]), .failure(.badArg)),
        ]
}
