import NIOCore
import Testing
import Usage

@testable import LineProtocol

@Suite("Replies")
struct ReplyTests {
    private static let replies: [(reply: Reply, text: String)] = [
        (.ok, "+OK\r\n"),
        (.pong, "+PONG\r\n"),
        (.text("two words — é"), "+two words — é\r\n"),
        (.text(""), "+\r\n"),
        (.bulk("two words — é"), "$16\r\ntwo words — é\r\n"),
        (.bulk(""), "$0\r\n\r\n"),
        (.lines(["version 1", "uptime_s=2"]), "*2\r\n+version 1\r\n+uptime_s=2\r\n"),
        (.lines([]), "*0\r\n"),
        (.empty, "*0\r\n"),
        (.periodUsages([]), "*0\r\n"),
        (.error(ReplyError(code: .badArg, text: "n must be a number")), "-BADARG n must be a number\r\n"),
        (
            .error(ReplyError(code: .unavailable, retryAfterMilliseconds: 250, text: "try again")),
            "-UNAVAILABLE retry_ms=250 try again\r\n"
        ),
    ]

    @Test("Each reply is encoded in the protocol's format and ends with CRLF", arguments: replies)
    func encoding(reply: Reply, text: String) { #expect(encoded(reply) == text) }

    @Test("A history has a line per period, in the order given")
    func history() {
        let limited = PeriodUsage(user: user, period: Example.november, used: 640, limit: 800, tier: .gentle)
        let unlimited = PeriodUsage(
            user: user,
            period: BillingPeriod(year: 2026, month: 10),
            used: 9,
            limit: nil,
            tier: .silent
        )
        #expect(
            encoded(.periodUsages([limited, unlimited]))
                == "*2\r\n+PERIOD user=\(userText) period=2026-11 used=640 limit=800 tier=gentle\r\n"
                + "+PERIOD user=\(userText) period=2026-10 used=9 limit=unlimited tier=silent\r\n"
        )
    }

    @Test("A model or a member has a line, without the fields that do not apply")
    func allowances() {
        var model = ReportedAllowance(kind: .model, name: "gpt-5*", used: 60, held: 2, tier: .prominent, weight: 5)
        (model.label, model.limit, model.fallback) = ("Large ones", 500, "mini")
        (model.windowLimit, model.windowUsed) = (50, 48)
        model.windowResetsAt = Instant("2026-11-21T19:30:00Z")
        let member = ReportedAllowance(kind: .member, name: userText, used: 0, held: 0, tier: .silent)
        #expect(
            encoded(.allowances(Example.november, [model, member]))
                == "*2\r\n+ALLOWANCE period=2026-11 kind=model name=gpt-5* label=\"Large ones\" used=60 held=2 limit=500 "
                + "tier=prominent window_limit=50 window_used=48 window_resets=2026-11-21T19:30:00Z weight=5 "
                + "fallback=mini\r\n+ALLOWANCE period=2026-11 kind=member name=\(userText) used=0 limit=unlimited "
                + "tier=silent weight=1\r\n"
        )
        let longest = String(repeating: "\"", count: 256)
        model.label = longest
        (model.used, model.held, model.limit, model.windowUsed) = (.max, .max, .max, .max)
        (model.windowLimit, model.weight) = (.max, .max)
        #expect(encoded(.allowances(Example.november, [model])).hasSuffix("fallback=mini\r\n"), "the line has room")
    }

    @Test("A report counts users, messages and the users of each tier")
    func report() {
        var report = PeriodReport(period: Example.november)
        #expect(
            encoded(.report(report))
                == "+REPORT period=2026-11 users=0 messages=0 silent=0 gentle=0 prominent=0 blocked=0\r\n"
        )
        report.add(users: 3, in: .silent, messages: 1_000)
        report.add(users: 1, in: .blocked, messages: 800)
        report.add(users: 2, in: .silent, messages: 9)
        #expect(
            encoded(.report(report))
                == "+REPORT period=2026-11 users=6 messages=1809 silent=5 gentle=0 prominent=0 blocked=1\r\n"
        )
    }

    @Test("HELLO is answered with Redis's fields: a flat array, or a map in RESP3")
    func hello() {
        let fields = { (version: Int) in
            "$6\r\nserver\r\n$8\r\nheadroom\r\n$7\r\nversion\r\n$5\r\n1.2.3\r\n$5\r\nproto\r\n:\(version)\r\n"
                + "$2\r\nid\r\n:42\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
                + "$7\r\nmodules\r\n*0\r\n"
        }
        #expect(encoded(.hello(version: 2, serverVersion: "1.2.3", connectionID: 42)) == "*14\r\n" + fields(2))
        #expect(encoded(.hello(version: 3, serverVersion: "1.2.3", connectionID: 42)) == "%7\r\n" + fields(3))
    }

    @Test("Control characters in a text become spaces, so no text can end its line")
    func oneLine() {
        for reply in [
            Reply.text("a\r\nb\u{1B}c\0\u{7F}"), .lines(["a\r\nb\u{1B}c\0\u{7F}"]),
            .error(ReplyError(code: .internal, text: "a\r\nb\u{1B}c\0\u{7F}")),
        ] {
            #expect(encoded(reply).hasSuffix("a  b c  \r\n"))
        }
    }

    @Test("Replies are appended to the buffer")
    func appended() {
        var buffer = ByteBuffer(string: "before ")
        for (reply, _) in ReplyTests.replies { reply.encode(into: &buffer) }
        #expect(String(buffer: buffer) == "before " + ReplyTests.replies.map(\.text).joined())
    }

    @Test("HELP lists the syntax of every verb, or of the verb that it is asked about")
    func help() {
        guard case .lines(let lines) = Reply.help(about: nil) else {
            Issue.record("HELP is no list")
            return
        }
        #expect(lines.count == Verb.allCases.count)
        for (line, verb) in zip(lines, Verb.allCases) {
            #expect(line.hasPrefix(verb.syntax))
            #expect(line.hasSuffix(verb.summary))
            #expect(verb.syntax.split(separator: " ").first == verb.rawValue[...])
            #expect(Reply.help(about: verb) == .lines([line]))
        }
    }

    @Test("A verb's syntax shows as many options as the verb accepts", arguments: Verb.allCases)
    func options(verb: Verb) { #expect(verb.definition.options.count == verb.syntax.count { $0 == "=" }) }

    @Test("Every error code states its meaning and whether a retry helps", arguments: ReplyError.Code.allCases)
    func codes(code: ReplyError.Code) {
        #expect(!code.meaning.isEmpty && !code.retryHelps.isEmpty)
        #expect(encoded(.error(ReplyError(code: code, text: "text"))) == "-\(code.rawValue) text\r\n")
    }
}
