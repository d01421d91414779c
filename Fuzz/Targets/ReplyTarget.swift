import LineProtocol
import NIOCore
import Usage

/// Encoded replies and messages, with any text in them, are decoded to the same values by an independent RESP decoder
/// and by our own client.
///
/// The input: replies and messages.
enum ReplyTarget {
    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = FuzzInput(input)
        for _ in 0..<8 where !decisions.isAtEnd {
            if decisions.flag() {
                try checkMessage(&decisions)
            } else {
                try checkReply(&decisions)
            }
        }
        try checkThatFieldsDecodeAgain(decisions.text())
    }

    private static func checkReply(_ decisions: inout FuzzInput) throws(Violation) {
        switch decisions.below(9) {
        case 0:
            let answer = decisions.answer()
            try requireFieldLines(.answer(answer), [answer.expected])
            if let received = answer.received {
                try requireEqual(try receive(.answer(answer)), .answer(received), "an answer, decoded by the client")
            }
        case 1:
            let periods = (0..<decisions.below(4)).map { _ in decisions.periodUsage() }
            try requireEqual(
                try read(.periodUsages(periods)),
                .array(periods.map { .simple($0.expected.spelled) }),
                "history"
            )
            guard case .list(let lines) = try receive(.periodUsages(periods)) else { return }
            try requireEqual(
                lines.map { PeriodUsage(periodLine: $0) },
                periods.map(\.received),
                "history, decoded by the client"
            )
        case 2:
            let report = decisions.report()
            try requireFieldLines(.report(report), [report.expected])
            guard case .line(let line) = try receive(.report(report)) else { return }
            try requireEqual(PeriodReport(reportLine: line), report.received, "a report, decoded by the client")
        case 3:
            let text = decisions.text()
            try requireEqual(try read(.text(text)), .simple(inOneLine(text)), "a text")
        case 4:
            let lines = (0..<decisions.below(4)).map { _ in decisions.text() }
            try requireEqual(try read(.lines(lines)), .array(lines.map { .simple(inOneLine($0)) }), "lines")
            try requireEqual(try receive(.lines(lines)), .list(lines.map(inOneLine)), "lines, decoded by the client")
        case 5: try checkError(&decisions)
        case 6: try checkHello(&decisions)
        default:
            for (reply, value) in [
                (Reply.ok, RESPReader.Value.simple("OK")), (.pong, .simple("PONG")), (.empty, .array([])),
            ] {
                try requireEqual(try read(reply), value, "\(reply)")
            }
        }
    }

    private static func checkError(_ decisions: inout FuzzInput) throws(Violation) {
        let error = ReplyError(
            code: decisions.one(of: ReplyError.Code.allCases),
            retryAfterMilliseconds: decisions.optional { $0.number() },
            text: decisions.text()
        )
        let retry = error.retryAfterMilliseconds.map { " retry_ms=\($0)" } ?? ""
        try requireEqual(
            try read(.error(error)),
            .error("\(error.code.rawValue)\(retry) \(inOneLine(error.text))"),
            "an error"
        )
        // No error's text begins like this field.
        guard !error.text.utf8.starts(with: "retry_ms=".utf8), case .error(let received) = try receive(.error(error))
        else { return }
        try requireEqual(received.code, error.code.rawValue, "a code, decoded by the client")
        try requireEqual(received.text, inOneLine(error.text), "a text, decoded by the client")
        try requireEqual(
            received.retryAfterMilliseconds,
            error.retryAfterMilliseconds,
            "advice, decoded by the client"
        )
    }

    private static func checkHello(_ decisions: inout FuzzInput) throws(Violation) {
        let version = 2 + decisions.below(2)
        let number = decisions.number()
        let fields: [RESPReader.Value] = [
            .bulk("server"), .bulk("headroom"), .bulk("version"), .bulk("1.2.3"), .bulk("proto"), .integer(version),
            .bulk("id"), .integer(number), .bulk("mode"), .bulk("standalone"), .bulk("role"), .bulk("master"),
            .bulk("modules"), .array([]),
        ]
        let hello = Reply.hello(version: version, serverVersion: "1.2.3", connectionID: number)
        try requireEqual(try read(hello), version == 3 ? .map(fields) : .array(fields), "HELLO")
    }

    private static func checkMessage(_ decisions: inout FuzzInput) throws(Violation) {
        let version = 2 + decisions.below(2)
        let channel = "usage:\(decisions.user())"
        let count = decisions.number()
        let message: ChannelMessage
        let elements: [RESPReader.Value]
        var received: ReceivedMessage?
        switch decisions.below(4) {
        case 0:
            message = .subscribed(channel: channel, count: count)
            elements = [.bulk("subscribe"), .bulk(channel), .integer(count)]
            received = .subscribed(channel: channel)
        case 1:
            message = .unsubscribed(channel: channel, count: count)
            elements = [.bulk("unsubscribe"), .bulk(channel), .integer(count)]
            received = .unsubscribed(channel: channel)
        case 2:
            message = .unsubscribed(channel: nil, count: count)
            elements = [.bulk("unsubscribe"), .null, .integer(count)]
        default:
            let answer = decisions.answer()
            message = .usage(channel: channel, answer)
            let payload = answer.expected.spelled.unicodeScalars.drop { $0 != " " }.dropFirst()
            elements = [.bulk("message"), .bulk(channel), .bulk(String(payload))]
            received = answer.received.map { .usage(channel: channel, $0.usage) }
        }
        var buffer = ByteBuffer()
        message.encode(into: &buffer, version: version)
        try requireEqual(try read(buffer), version == 3 ? .push(elements) : .array(elements), "a message")
        guard version == 2, let received else { return }
        try requireEqual(try decodedByClient(buffer), .message(received), "a message, decoded by the client")
    }

    private static func requireFieldLines(_ reply: Reply, _ expected: [FieldLine]) throws(Violation) {
        guard case .simple(let line) = try read(reply) else { throw Violation(description: "not a line: \(reply)") }
        try requireEqual(FieldLine("+" + line), expected[0], "the fields")
    }

    private static func receive(_ reply: Reply) throws(Violation) -> ReceivedReply {
        var buffer = ByteBuffer()
        reply.encode(into: &buffer)
        return try decodedByClient(buffer)
    }

    private static func read(_ reply: Reply) throws(Violation) -> RESPReader.Value {
        var buffer = ByteBuffer()
        reply.encode(into: &buffer)
        return try read(buffer)
    }

    private static func read(_ buffer: ByteBuffer) throws(Violation) -> RESPReader.Value {
        var reader = RESPReader(Array(buffer.readableBytesView))
        let value = try reader.next()
        try require(reader.isAtEnd, "more than one reply")
        return value
    }

    /// Fields decoded from any text, written out and decoded again, are the same.
    private static func checkThatFieldsDecodeAgain(_ text: String) throws(Violation) {
        guard let line = FieldLine("+" + text) else { return }
        guard let again = FieldLine("+" + line.spelled) else {
            throw Violation(description: "not decoded again: \(line.spelled)")
        }
        try requireEqual(again, line, "fields, written and decoded again")
    }
}

extension FieldLine {
    /// The line without its plus sign, written by the rules of docs/reference/framing.md.
    var spelled: String {
        fields.reduce(status) { line, field in "\(line) \(field.name)=\(quoted(field.value))" }
    }

    /// Compares scalars, because a space and a combining mark are one character.
    private func quoted(_ value: String) -> String {
        guard
            value.isEmpty
                || value.unicodeScalars.contains(where: { $0.value <= 0x20 || "\"\\\u{7F}".unicodeScalars.contains($0) }
                )
        else { return value }
        var quoted = "\""
        for scalar in value.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { quoted.unicodeScalars.append("\\") }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }
}
