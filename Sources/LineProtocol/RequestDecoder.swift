import NIOCore

/// How much one request may be.
public struct RequestLimits: Sendable, Equatable {
    /// Bytes of an inline request without its line end, and of an array request as it would be inline.
    public var requestSizeBytes: Int
    /// The verb and its arguments.
    public var tokens: Int

    public init(requestSizeBytes: Int = 1_024, tokens: Int = 16) {
        self.requestSizeBytes = requestSizeBytes
        self.tokens = tokens
    }
}

/// What a peer's bytes amount to.
public enum DecodedRequest: Sendable, Equatable {
    case command(Command)
    /// Answer it; the connection goes on, and the requests around it are unharmed.
    case failure(ReplyError)
    /// Answer it, then close: the decoder yields nothing more.
    case fatal(ReplyError)
}

/// Makes requests of bytes, however the network cut them. It does no I/O and waits for nothing: it is given what has
/// come, and says what that is.
///
/// Memory is bounded: an incomplete request leaves no more in the buffer than the limits and its framing, because it
/// is refused as soon as it can be known to be too long.
public struct RequestDecoder {
    private enum State {
        /// Between two requests. Can transition to: inline, array, closed.
        case idle
        /// In a line of which not all has come. Can transition to: idle, closed.
        case inline(InlineFraming)
        /// In an array of which not all has come. Can transition to: idle, closed.
        case array(ArrayFraming)
        /// After a fatal failure: whatever comes is dropped.
        case closed
    }

    private var limits: RequestLimits
    private var permissions = Permissions.everything
    private var commonForms: CommonForms
    private var state = State.idle
    private var opening = ProtocolSniffer()
    /// Whether the last request that `next` has returned came as an array, as clients of Redis send it. Not kept for the common
    /// forms of CONSUME, whose answer is the same line for both.
    public private(set) var wasArray = false
    /// Places of the tokens found so far, from the request's first byte. Kept from request to request, so that finding
    /// them allocates nothing.
    private var tokens: [Range<Int>] = []

    public init(limits: RequestLimits = .init()) {
        self.limits = limits
        commonForms = CommonForms(limits: limits, permissions: permissions)
        tokens.reserveCapacity(limits.tokens + 1)
    }

    /// From the next request on, the peer may ask this, and this much at a time. What it may not ask is a failure.
    public mutating func permit(_ permissions: Permissions, within limits: RequestLimits) {
        self.limits = limits
        self.permissions = permissions
        commonForms = CommonForms(limits: limits, permissions: permissions)
    }

    /// Takes one complete request from the buffer, if there is one, and with it the blank lines before it. Nil needs
    /// more bytes.
    ///
    /// - Parameter buffer: begins with what the last call left in it; bytes may only have been appended.
    public mutating func next(_ buffer: inout ByteBuffer) -> DecodedRequest? {
        while buffer.readableBytes > 0 {
            let (bytes, request) = buffer.withUnsafeReadableBytes { step($0) }
            buffer.moveReaderIndex(forwardBy: bytes)
            if let request { return request }
            if bytes == 0 { return nil }
        }
        return nil
    }

    /// Takes one request or one blank line: so many bytes of it, and what they ask for.
    private mutating func step(_ bytes: UnsafeRawBufferPointer) -> (bytes: Int, request: DecodedRequest?) {
        guard let first = bytes.first else { return (0, nil) }
        // None of them is how another protocol begins.
        if case .idle = state, let (count, user) = commonForms.recognise(bytes) {
            opening.close()
            return (count, .command(.consume(user: user, messages: 1)))
        }
        switch opening.look(at: bytes) {
        case .ours: break
        case .undecided: return (0, nil)
        case .foreign(let error): return (bytes.count, close(error))
        }
        let step: FramingStep
        switch state {
        case .closed: return (bytes.count, nil)
        case .idle where first == UInt8(ascii: "*"):
            wasArray = true
            step = takeArray(ArrayFraming(), bytes)
        case .idle:
            wasArray = false
            step = takeLine(InlineFraming(), bytes)
        case .array(let framing): step = takeArray(framing, bytes)
        case .inline(let framing): step = takeLine(framing, bytes)
        }
        switch step {
        case .incomplete: return (0, nil)
        case .blank(let count):
            state = .idle
            opening.skip(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            return (count, nil)
        case .request(let count):
            state = .idle
            opening.close()
            defer { tokens.removeAll(keepingCapacity: true) }
            return (count, parse(bytes))
        case .fatal(let error): return (bytes.count, close(error))
        }
    }

    private mutating func takeLine(_ framing: InlineFraming, _ bytes: UnsafeRawBufferPointer) -> FramingStep {
        var framing = framing
        let step = framing.step(bytes, limits, &tokens)
        state = .inline(framing)
        return step
    }

    private mutating func takeArray(_ framing: ArrayFraming, _ bytes: UnsafeRawBufferPointer) -> FramingStep {
        var framing = framing
        let step = framing.step(bytes, limits, &tokens)
        state = .array(framing)
        return step
    }

    private func parse(_ bytes: UnsafeRawBufferPointer) -> DecodedRequest {
        do throws(ReplyError) {
            return .command(try CommandParser.parse(TokenList(bytes: bytes, ranges: tokens), permissions))
        } catch {
            return .failure(error)
        }
    }

    private mutating func close(_ error: ReplyError) -> DecodedRequest {
        state = .closed
        opening.close()
        return .fatal(error)
    }
}
