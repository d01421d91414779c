/// Watches a connection's first bytes for clients that speak something else, so that whoever pointed a browser or a
/// load balancer at this port reads what is wrong instead of an error per header line.
struct ProtocolSniffer {
    private enum State {
        /// No request has come yet; `skippedBytes` is how much of the PROXY protocol's binary signature the blank
        /// lines before it were, nil when they were something else.
        case first(skippedBytes: Int?)
        /// The peer speaks our language, or has been told that it does not.
        case over
    }

    private var state = State.first(skippedBytes: 0)

    enum Verdict {
        case ours
        /// More bytes will tell.
        case undecided
        case foreign(ReplyError)
    }

    /// Looks at all that has come from a request's first byte on.
    ///
    /// Only the PROXY signature makes anybody wait, because it goes on after an LF. All other beginnings are ordinary
    /// lines until they are complete, and none is a verb.
    func look(at bytes: UnsafeRawBufferPointer) -> Verdict {
        guard case .first(let skippedBytes) = state else { return .ours }
        if skippedBytes == ProtocolSniffer.signatureBlankBytes {
            if bytes.starts(with: ProtocolSniffer.signatureTail) { return .foreign(ProtocolSniffer.proxyRefusal) }
            if ProtocolSniffer.signatureTail.starts(with: bytes) { return .undecided }
        }
        if ProtocolSniffer.methods.contains(where: { bytes.starts(with: $0.utf8) }) {
            return .foreign(
                ProtocolSniffer.refusal("not HTTP; send PING and a line end, or use the address of the http setting")
            )
        }
        if bytes.count >= 2, bytes[0] == 0x16, bytes[1] == 0x03 {
            return .foreign(ProtocolSniffer.refusal("without TLS; connect in plain text"))
        }
        return bytes.starts(with: "PROXY ".utf8) ? .foreign(ProtocolSniffer.proxyRefusal) : .ours
    }

    /// Blank lines were skipped; those before the first request may be the signature's beginning.
    mutating func skip(_ line: UnsafeRawBufferPointer) {
        guard case .first(let skippedBytes) = state else { return }
        guard let skippedBytes, skippedBytes < ProtocolSniffer.signatureBlankBytes, line.elementsEqual("\r\n".utf8)
        else {
            state = .first(skippedBytes: nil)
            return
        }
        state = .first(skippedBytes: skippedBytes + line.count)
    }

    /// The first request has come.
    mutating func close() {
        state = .over
    }

    /// A request line of HTTP begins with a method in upper case and a space.
    private static let methods = [
        "GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "TRACE ",
    ]

    /// The signature is 0D 0A 0D 0A 00 0D 0A 51 55 49 54 0A. It begins with two blank lines, which are skipped like
    /// any; taken as lines, the rest would be a bad one and, of all things, a QUIT.
    private static let signatureBlankBytes = 4
    private static let signatureTail: [UInt8] = [0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    private static let proxyRefusal = refusal("without a PROXY header; turn it off in the load balancer")

    private static func refusal(_ advice: String) -> ReplyError {
        ReplyError(code: .protocol, text: "this port speaks the line protocol, \(advice)")
    }
}
