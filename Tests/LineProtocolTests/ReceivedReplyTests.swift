import NIOCore
import Testing
import Usage

@testable import LineProtocol

@Suite("Decoded replies")
struct ReceivedReplyTests {
    /// The replies of a client that receives these reads.
    private static func receive(_ reads: [[UInt8]]) throws -> [ReceivedReply] {
        var decoder = ReplyFrameDecoder()
        var buffer = ByteBuffer()
        var replies: [ReceivedReply] = []
        for read in reads {
            buffer.discardReadBytes()
            buffer.writeBytes(read)
            while let frame = try decoder.next(in: &buffer) { replies.append(try ReceivedReply(frame)) }
        }
        return replies
    }

    static func receive(_ text: String) throws -> [ReceivedReply] { try receive([Array(text.utf8)]) }

    @Test("A list without an end is limited")
    func endlessList() {
        var decoder = ReplyFrameDecoder()
        var buffer = ByteBuffer(string: "*65536\r\n")
        let line = "+" + String(repeating: "x", count: 60_000) + "\r\n"
        var frame: ReplyFrameDecoder.Frame?
        var error: MalformedReply?
        for _ in 0..<1_000 where error == nil && frame == nil {
            buffer.discardReadBytes()
            buffer.writeString(line)
            do throws(MalformedReply) {
                frame = try decoder.next(in: &buffer)
            } catch let malformed {
                error = malformed
            }
        }
        #expect(error == MalformedReply(.listTooLong))
    }

    @Test("A report's counts must not be negative, nor their sum overflow")
    func reports() {
        let most = Int.max
        #expect(
            PeriodReport(reportLine: "REPORT period=x messages=1 silent=\(most) gentle=1 prominent=1 blocked=1") == nil
        )
        #expect(PeriodReport(reportLine: "REPORT period=x messages=1 silent=-1 gentle=1 prominent=1 blocked=1") == nil)
        let report = PeriodReport(reportLine: "REPORT period=x messages=9 silent=1 gentle=2 prominent=3 blocked=4")
        #expect(report?.users == 10 && report?.messages == 9)
    }

    @Test("An error's code ends at the first space, whatever follows it")
    func codes() {
        let error = ReceivedError("OVERLOADED retry_ms=5 \u{301}x")
        #expect(error.code == "OVERLOADED" && error.retryAfterMilliseconds == 5 && error.text == "\u{301}x")
        #expect(ReceivedError("INTERNAL \u{301}").code == "INTERNAL")
        #expect(ReceivedError("INTERNAL").text.isEmpty && ReceivedError("").code.isEmpty)
    }

    @Test("Lines, lists, errors and messages are decoded in order, also byte by byte")
    func kinds() throws {
        let usage = Answer(user: user, status: .ok, snapshot: Example.paid(used: 640), isDetailed: true)
        guard case .answer(let answer) = try ReceivedReplyTests.receive(encoded(.answer(usage))).first else {
            Issue.record("an answer is not decoded as one")
            return
        }
        #expect(answer.usage.used == 640 && answer.usage.label == usage.snapshot.label)
        var buffer = ByteBuffer()
        let channel = UsageChannel(user).name
        ChannelMessage.subscribed(channel: channel, count: 1).encode(into: &buffer, version: 2)
        ChannelMessage.usage(channel: channel, usage).encode(into: &buffer, version: 2)
        buffer.writeSubscribedPong(nil)
        Reply.lines(["a=1", "b=\"x y\""]).encode(into: &buffer)
        Reply.empty.encode(into: &buffer)
        Reply.pong.encode(into: &buffer)
        let error = ReplyError(code: .unavailable, retryAfterMilliseconds: 500, text: "the database is away")
        Reply.error(error).encode(into: &buffer)
        Reply.ok.encode(into: &buffer)
        let bytes = Array(buffer.readableBytesView)
        let expected: [ReceivedReply] = [
            .message(.subscribed(channel: channel)),
            .message(.usage(channel: channel, answer.usage)), .message(.pong),
            .list(["a=1", "b=\"x y\""]), .list([]), .line("PONG"),
            .error(ReceivedError("UNAVAILABLE retry_ms=500 the database is away")), .line("OK"),
        ]
        #expect(try ReceivedReplyTests.receive([bytes]) == expected)
        #expect(try ReceivedReplyTests.receive(bytes.map { [$0] }) == expected)
        guard case .error(let received) = expected[6] else { return }
        #expect(received.code == "UNAVAILABLE" && received.retryAfterMilliseconds == 500)
        #expect(received.text == "the database is away")
    }

    @Test("A period and a report decode to what was encoded")
    func periods() throws {
        let period = PeriodUsage(
            user: user,
            period: BillingPeriod(year: 2026, month: 11),
            used: 3,
            limit: nil,
            tier: .silent
        )
        guard case .list(let lines) = try ReceivedReplyTests.receive(encoded(.periodUsages([period]))).first else {
            Issue.record("a history is a list")
            return
        }
        #expect(lines.map(PeriodUsage.init(periodLine:)) == [period])
        var report = PeriodReport(period: period.period)
        report.add(users: 2, in: .gentle, messages: 7)
        report.add(users: 1, in: .blocked, messages: 1)
        guard case .line(let line) = try ReceivedReplyTests.receive(encoded(.report(report))).first else {
            Issue.record("a report is a line")
            return
        }
        let read = PeriodReport(reportLine: line)
        #expect(read?.messages == 8 && read?.users == 3 && read?.users(in: .gentle) == 2)
    }

    @Test("A message allowed uncounted has `degraded` and a banner, and no other field")
    func degraded() throws {
        let line = "+ALLOWED user=\(userText) degraded=1"
        let replies = try ReceivedReplyTests.receive("\(line)\r\n\(line) banner=\"Keep chatting.\"\r\n")
        let expected = [nil, "Keep chatting."].map { banner in
            ReceivedReply.answer(ReceivedAnswer(status: .allowed, usage: .degraded(user, banner: banner)))
        }
        #expect(replies == expected)
        let (held, released) = (
            "+HELD user=\(userText) degraded=1\r\n", "+OK user=\(userText) released=0 degraded=1\r\n"
        )
        #expect(
            try ReceivedReplyTests.receive(held + released) == [
                .answer(ReceivedAnswer(status: .held, usage: .degraded(user, banner: nil))),
                .answer(ReceivedAnswer(status: .ok, usage: .degraded(user, banner: nil), released: 0)),
            ]
        )
    }

    @Test("Unknown fields and codes of a newer service are accepted")
    func newer() throws {
        let line = encoded(.answer(Answer(user: user, status: .ok, snapshot: Example.paid(used: 1))))
        let more = line.replacing("\r\n", with: " weather=\"fine \\\" day\"\r\n")
        #expect(try ReceivedReplyTests.receive(more) == (try ReceivedReplyTests.receive(line)))
        #expect(try ReceivedReplyTests.receive("-NEWCODE text\r\n") == [.error(ReceivedError("NEWCODE text"))])
    }

    @Test(
        "Replies of another protocol are refused",
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n", "\r\n", ":1\r\n", "$3\r\nabc\r\n", "*-1\r\n", "*x\r\n", "*99999999\r\n",
            "*1\r\n*1\r\n+a\r\n", "*1\r\n-ERR a\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*1\r\n$-1\r\n",
            "*1\r\n$1\r\nabc\r\n",
            "+ALLOWED user=\(userText)\r\n", "+BLOCKED user=\(userText) degraded=1\r\n", "+OK user=x\r\n",
            "+OK user=\(userText) used=-1\r\n", "+OK user=\(userText) tier=lofty\r\n", "+OK user=\(userText) used\r\n",
            "+ALLOWED user=\(userText) degraded=2\r\n", "+ALLOWED user=\(userText) degraded=yes\r\n",
        ]
    )
    func malformed(text: String) { #expect(throws: MalformedReply.self) { try ReceivedReplyTests.receive(text) } }

    @Test(
        "A yes that is not 1, an incomplete window, and numbers without their model or member are refused",
        arguments: [
            "replayed=2", "replayed=0", "replayed=true", "shadow=yes", "window_limit=5", "window_used=x",
            "model_limit=5",
            "model=m*", "member_used=5", "member=x", "fallback=m*",
        ]
    )
    func inexact(field: String) throws {
        let line = encoded(.answer(Answer(user: user, status: .ok, snapshot: Example.paid(used: 1))))
        let more = line.replacing("\r\n", with: " \(field)\r\n")
        #expect(throws: MalformedReply.self) { try ReceivedReplyTests.receive(more) }
    }

    @Test("A line without an end is limited")
    func endless() {
        let line = [UInt8(ascii: "+")] + [UInt8](repeating: 0x61, count: ReplyFrameDecoder.lineBytesMaximum + 1)
        #expect(throws: MalformedReply(.lineTooLong)) { try ReceivedReplyTests.receive([line]) }
    }
}
