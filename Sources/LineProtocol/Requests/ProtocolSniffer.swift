/// Detects HTTP, TLS and PROXY headers in a connection's first bytes, so that their clients get one error that names
/// the cause instead of an error for each line.
struct ProtocolSniffer {
    private enum State {
        /// No request was received yet. The binary signature of PROXY begins with empty lines: `skippedBytes` counts
        /// them, and is nil once they cannot be the signature's.
        case beforeFirstRequest(skippedBytes: Int?)
        /// The protocol is known. Final.
        case finished
    }

    private var state = State.beforeFirstRequest(skippedBytes: 0)

    enum Detection {
        case lineProtocol
        case needsMoreBytes
        case otherProtocol(ReplyError)
    }

    /// - Parameter bytes: received bytes, beginning with a request's first one.
    /// - Returns: `needsMoreBytes` only within the PROXY signature, which continues after an LF. An incomplete
    ///   beginning of the others is an incomplete line, which decodes to nothing yet.
    func detect(_ bytes: UnsafeRawBufferPointer) -> Detection {
        guard case .beforeFirstRequest(let skippedBytes) = state else { return .lineProtocol }
        if skippedBytes == ProtocolSniffer.signatureBlankBytes {
            if bytes.starts(with: ProtocolSniffer.signatureTail) { return .otherProtocol(ProtocolSniffer.proxyRefusal) }
            if ProtocolSniffer.signatureTail.starts(with: bytes) { return .needsMoreBytes }
        }
        if ProtocolSniffer.methods.contains(where: { bytes.starts(with: $0.utf8) }) {
            return .otherProtocol(
                ProtocolSniffer.refusal("not HTTP; send PING and a line end, or use the address of the http setting")
            )
        }
        if bytes.count >= 2, bytes[0] == 0x16, bytes[1] == 0x03 {
            return .otherProtocol(ProtocolSniffer.refusal("without TLS; connect in plain text"))
        }
        return bytes.starts(with: "PROXY ".utf8) ? .otherProtocol(ProtocolSniffer.proxyRefusal) : .lineProtocol
    }

    /// - Parameter line: an empty line that the decoder has skipped; it may be part of the PROXY signature.
    mutating func skip(_ line: UnsafeRawBufferPointer) {
        guard case .beforeFirstRequest(let skippedBytes) = state else { return }
        guard let skippedBytes, skippedBytes < ProtocolSniffer.signatureBlankBytes, line.elementsEqual("\r\n".utf8)
        else {
            state = .beforeFirstRequest(skippedBytes: nil)
            return
        }
        state = .beforeFirstRequest(skippedBytes: skippedBytes + line.count)
    }

    /// Ends the detection, because the first request is decoded.
    mutating func finish() {
        state = .finished
    }

    /// An HTTP request begins with a method in upper case and a space.
    private static let methods = [
        "GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "TRACE ",
    ]

    /// The signature is 0D 0A 0D 0A 00 0D 0A 51 55 49 54 0A: two empty lines, a line with a NUL, and `QUIT`.
    private static let signatureBlankBytes = 4
    private static let signatureTail: [UInt8] = [0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    private static let proxyRefusal = refusal("without a PROXY header; turn it off in the load balancer")

    private static func refusal(_ advice: String) -> ReplyError {
        ReplyError(code: .protocol, text: "this port speaks the line protocol, \(advice)")
    }
}
