import Usage

@testable import LineProtocol

extension BadInput {
    private static func broken(_ text: String) -> BadInput {
        BadInput(String(reflecting: text), text, .fatal(.protocol))
    }

    static let arrays: [BadInput] = [
        // The count.
        broken("*\r\n"), broken("*-1\r\n"), broken("*-\r\n"), broken("*+1\r\n"), broken("*01\r\n"), broken("*00\r\n"),
        broken("*x\r\n"), broken("* 1\r\n"), broken("*1 \r\n"), broken("*1.0\r\n"), broken("*1\n"), broken("*1\rx"),
        broken("**1\r\n"), broken("*1048577\r\n"), broken("*9223372036854775808\r\n"),
        broken("*" + String(repeating: "9", count: 40)), broken("*" + String(repeating: "0", count: 40)),
        broken("*\n"), broken("*٣\r\n"),
        // An element's length.
        broken("*1\r\n$\r\n"), broken("*1\r\n$-1\r\n"), broken("*1\r\n$+4\r\n"), broken("*1\r\n$04\r\nPING\r\n"),
        broken("*1\r\n$x\r\n"), broken("*1\r\n$4\nPING\r\n"), broken("*1\r\n$4\rPING\r\n"), broken("*1\r\n$4 \r\n"),
        broken("*1\r\n$536870913\r\n"), broken("*1\r\n$9223372036854775808\r\n"),
        broken("*1\r\n$" + String(repeating: "1", count: 40)),
        // Something else where an element should be.
        broken("*1\r\n*1\r\n$4\r\nPING\r\n"), broken("*1\r\n:1\r\n"), broken("*1\r\n+PING\r\n"),
        broken("*1\r\nPING\r\n"),
        broken("*1\r\n\r\n$4\r\nPING\r\n"), broken("*2\r\n$4\r\nPING\r\n*0\r\n"), broken("*1\r\n*-1\r\n"),
        // Terminators.
        broken("*1\r\n$4\r\nPINGS\r\n"), broken("*1\r\n$5\r\nPING\r\n\r\n"), broken("*1\r\n$4\r\nPING\n\r"),
        broken("*1\r\n$4\r\nPING\rx"), broken("*1\r\n$0\r\nPING\r\n"), broken("*2\r\n$4\r\nPING$1\r\na\r\n"),
    ]
}
