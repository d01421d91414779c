import NIOCore
import Usage

/// One reply. Most are one line, or a count and that many lines: readable, and valid RESP for Redis client libraries.
/// `bulk`, `integer`, `null` and `hello` have Redis's own form.
public enum Reply: Sendable, Equatable {
    /// `+ALLOWED …`, `+BLOCKED …`, `+HELD …` or `+OK …`, by the answer's status.
    case answer(Answer)
    /// `*N`, then a `+PERIOD …` for each.
    case periodUsages([PeriodUsage])
    /// `*N`, then a `+ALLOWANCE …` for each.
    case allowances(BillingPeriod, [ReportedAllowance])
    /// `+REPORT …`
    case report(PeriodReport)
    case ok
    case pong
    /// `+`, then the text.
    case text(String)
    /// `$`, the length in bytes, and the bytes, as Redis answers `ECHO` and `INFO`.
    case bulk(EchoedBytes)
    /// `:`, then the number.
    case integer(Int)
    /// Redis's null in a version of RESP.
    case null(version: Int)
    /// `*N`, then `+` and the line for each.
    case lines([String])
    /// `*0`
    case empty
    /// The answer to `HELLO`, with the fields that client libraries read.
    ///
    /// - Parameter version: 3 results in a RESP3 map, any other version in RESP2's flat array.
    case hello(version: Int, serverVersion: String, connectionID: Int)
    case error(ReplyError)
}

extension Reply {
    /// Appends the reply to `buffer`, ended by CRLF.
    ///
    /// - Parameter vocabulary: the vocabulary of the request's language, for an answer.
    public func encode(into buffer: inout ByteBuffer, in vocabulary: Vocabulary = Words.shipped.standard) {
        switch self {
        case .answer(let answer): answer.encode(into: &buffer, in: vocabulary)
        case .periodUsages(let periods):
            encodeCount(periods.count, into: &buffer)
            for period in periods { period.encode(into: &buffer) }
        case .allowances(let period, let allowances):
            encodeCount(allowances.count, into: &buffer)
            for allowance in allowances { allowance.encode(in: period, into: &buffer) }
        case .report(let report): report.encode(into: &buffer)
        case .ok: buffer.writeStaticString("+OK\r\n")
        case .pong: buffer.writeStaticString("+PONG\r\n")
        case .text(let text): encodeLine(text, into: &buffer)
        case .bulk(let text): buffer.writeBulk(text.bytes)
        case .integer(let number): buffer.writeString(":\(number)\r\n")
        case .null(let version): buffer.writeStaticString(version == 3 ? "_\r\n" : "$-1\r\n")
        case .lines(let lines):
            encodeCount(lines.count, into: &buffer)
            for line in lines { encodeLine(line, into: &buffer) }
        case .empty: buffer.writeStaticString("*0\r\n")
        case .hello(let version, let serverVersion, let connectionID):
            encodeHello(version: version, serverVersion: serverVersion, connectionID: connectionID, into: &buffer)
        case .error(let error): encodeError(error, into: &buffer)
        }
    }

    private func encodeCount(_ count: Int, into buffer: inout ByteBuffer) {
        buffer.writeLine(capacityBytes: 1 + LineWriter.integerBytesMaximum) { line in
            line.putLiteral("*")
            line.put(count)
        }
    }

    private func encodeLine(_ text: String, into buffer: inout ByteBuffer) {
        buffer.writeLine(capacityBytes: 1 + text.utf8.count) { line in
            line.putLiteral("+")
            line.put(text)
        }
    }

    private func encodeError(_ error: ReplyError, into buffer: inout ByteBuffer) {
        let code = error.code.rawValue
        let capacity = code.utf8.count + error.text.utf8.count + LineWriter.integerBytesMaximum + 16
        buffer.writeLine(capacityBytes: capacity) { line in
            line.putLiteral("-")
            line.put(code)
            if let milliseconds = error.retryAfterMilliseconds {
                line.putLiteral(" retry_ms=")
                line.put(milliseconds)
            }
            line.putLiteral(" ")
            line.put(error.text)
        }
    }

    /// Writes the fields of Redis's answer: libraries read `proto` and `version`, and some of them `role` and `mode`.
    private func encodeHello(
        version: Int,
        serverVersion: String,
        connectionID: Int,
        into buffer: inout ByteBuffer
    ) {
        let isMap = version == 3
        let capacity = 256 + serverVersion.utf8.count
        buffer.writeLine(capacityBytes: capacity) { line in
            line.putLiteral(isMap ? "%7\r\n" : "*14\r\n")
            line.putLiteral("$6\r\nserver\r\n$8\r\nheadroom\r\n$7\r\nversion\r\n$")
            line.put(serverVersion.utf8.count)
            line.putLiteral("\r\n")
            line.put(serverVersion)
            line.putLiteral(isMap ? "\r\n$5\r\nproto\r\n:3\r\n" : "\r\n$5\r\nproto\r\n:2\r\n")
            line.putLiteral("$2\r\nid\r\n:")
            line.put(connectionID)
            line.putLiteral("\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0")
        }
    }
}
