import NIOCore
import Usage

/// The limits of one request.
public struct RequestLimits: Sendable, Equatable {
    /// The size of an inline request without its line end. An array request has the size that it would have inline.
    public var bytesMaximum: Int
    /// The most tokens: the verb and its arguments, counted together.
    public var tokensMaximum: Int

    public init(bytesMaximum: Int = 1_024, tokensMaximum: Int = 16) {
        self.bytesMaximum = bytesMaximum
        self.tokensMaximum = tokensMaximum
    }
}

public enum DecodedRequest: Sendable, Equatable {
    case command(Command)
    /// The service replies with the error. The requests before and after are unaffected.
    case failure(ReplyError)
    /// The service replies with the error and closes the connection. The decoder yields nothing more.
    case fatal(ReplyError)
}

/// Decodes requests from a stream of bytes, however the network has split it. It does no I/O.
///
/// Memory is bounded: a request over the limits is an error before all of it is received, so the buffer never holds
/// more than the limits and the framing.
public struct RequestDecoder {
    private enum State {
        /// The decoder is between two requests. Can transition to: inline, array, closed.
        case idle
        /// The decoder is within a line. Can transition to: idle, closed.
        case inline(InlineFrameDecoder)
        /// The decoder is within an array. Can transition to: idle, closed.
        case array(ArrayFrameDecoder)
        /// A fatal error was found; received bytes are dropped. Final.
        case closed
    }

    private var limits: RequestLimits
    private let namespace: UserNamespace?
    private var permissions = Permissions.all
    private var plainConsumeDecoder: PlainConsumeDecoder
    private var state = State.idle
    private var sniffer = ProtocolSniffer()
    /// Whether the last request that `next` has returned was an array, the form of Redis clients. A plain CONSUME does
    /// not set it, because its reply is the same in both forms.
    public private(set) var wasArray = false
    /// The ranges of the tokens found so far, counted from the request's first byte. They are reused for each request,
    /// so that decoding allocates nothing.
    private var tokens: [Range<Int>] = []

    /// - Parameter namespace: the namespace of users' names; nil if users are UUIDs only.
    public init(limits: RequestLimits = .init(), namespace: UserNamespace? = nil) {
        self.limits = limits
        self.namespace = namespace
        plainConsumeDecoder = PlainConsumeDecoder(limits: limits, permissions: permissions)
        tokens.reserveCapacity(limits.tokensMaximum + 1)
    }

    /// Applies permissions and limits from the next request on. A request without permission is a failure.
    public mutating func permit(_ permissions: Permissions, within limits: RequestLimits) {
        self.limits = limits
        self.permissions = permissions
        plainConsumeDecoder = PlainConsumeDecoder(limits: limits, permissions: permissions)
    }

    /// Removes the next complete request from the buffer, and the empty lines before it.
    ///
    /// - Parameter buffer: the bytes that the last call has left in it, followed by newly received ones.
    /// - Returns: nil if more bytes are needed.
    public mutating func next(_ buffer: inout ByteBuffer) -> DecodedRequest? {
        while buffer.readableBytes > 0 {
            let (bytes, request) = buffer.withUnsafeReadableBytes { decode($0) }
            buffer.moveReaderIndex(forwardBy: bytes)
            if let request { return request }
            if bytes == 0 { return nil }
        }
        return nil
    }

    /// Decodes one request or one empty line and returns its size, which is 0 if more bytes are needed.
    private mutating func decode(_ bytes: UnsafeRawBufferPointer) -> (bytes: Int, request: DecodedRequest?) {
        guard let first = bytes.first else { return (0, nil) }
        // This comes before the sniffer, because no other protocol begins with the same bytes.
        if case .idle = state, let (count, user) = plainConsumeDecoder.decode(bytes) {
            sniffer.finish()
            return (count, .command(.consume(user: user, messages: 1)))
        }
        switch sniffer.detect(bytes) {
        case .lineProtocol: break
        case .needsMoreBytes: return (0, nil)
        case .otherProtocol(let error): return (bytes.count, close(error))
        }
        let step: FrameDecoderStep
        switch state {
        case .closed: return (bytes.count, nil)
        case .idle where first == UInt8(ascii: "*"):
            wasArray = true
            step = decodeArray(ArrayFrameDecoder(), bytes)
        case .idle:
            wasArray = false
            step = decodeLine(InlineFrameDecoder(), bytes)
        case .array(let decoder): step = decodeArray(decoder, bytes)
        case .inline(let decoder): step = decodeLine(decoder, bytes)
        }
        switch step {
        case .incomplete: return (0, nil)
        case .empty(let count):
            state = .idle
            sniffer.skip(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
            return (count, nil)
        case .request(let count):
            state = .idle
            sniffer.finish()
            defer { tokens.removeAll(keepingCapacity: true) }
            return (count, parse(bytes))
        case .fatal(let error): return (bytes.count, close(error))
        }
    }

    private mutating func decodeLine(
        _ decoder: InlineFrameDecoder,
        _ bytes: UnsafeRawBufferPointer
    ) -> FrameDecoderStep {
        var decoder = decoder
        let step = decoder.step(bytes, limits, &tokens)
        state = .inline(decoder)
        return step
    }

    private mutating func decodeArray(
        _ decoder: ArrayFrameDecoder,
        _ bytes: UnsafeRawBufferPointer
    ) -> FrameDecoderStep {
        var decoder = decoder
        let step = decoder.step(bytes, limits, &tokens)
        state = .array(decoder)
        return step
    }

    private func parse(_ bytes: UnsafeRawBufferPointer) -> DecodedRequest {
        do throws(ReplyError) {
            let tokens = RequestTokens(bytes: bytes, ranges: tokens)
            return .command(try CommandParser.parse(tokens, permissions, namespace, isArray: wasArray))
        } catch {
            return .failure(error)
        }
    }

    private mutating func close(_ error: ReplyError) -> DecodedRequest {
        state = .closed
        sniffer.finish()
        return .fatal(error)
    }
}
