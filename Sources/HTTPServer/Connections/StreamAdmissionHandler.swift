import HTTPTypes
import NIOCore
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP2

/// It does for a stream of HTTP/2 what `RequestAdmissionHandler` does for the requests of an HTTP/1.1 connection: it
/// reports the stream to the connection's limits, answers health checks, and refuses requests over the limit. It also
/// closes a stream whose peer does not read its response.
final class StreamAdmissionHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private enum State {
        /// Can transition to: held.
        case idle
        /// Its head has been received; the next part shows whether a body follows. Can transition to: started,
        /// answered.
        case held(HTTPRequest)
        /// Hummingbird answers it. Final.
        case started
        /// It was answered here; the rest of the request is discarded. Final.
        case answered
    }

    /// The stream has ended before its request.
    struct Incomplete: Error {}

    /// The most header fields, as for HTTP/1.1 (`HTTPTransport`).
    static let headerFieldsMaximum = 100
    private let connection: ConnectionLimitHandler
    private let health: HealthResponder
    /// Starts Hummingbird's task for the stream. Returns false if Hummingbird accepts no more.
    private let start: (any Channel) throws -> Bool
    private var state = State.idle
    private var isComplete = false
    /// A head was received, and nothing after it.
    private var awaitsBody = false
    private var isEndUnsent = false
    private var outputTimer: Scheduled<Void>?

    init(
        _ connection: ConnectionLimitHandler,
        health: HealthResponder,
        start: @escaping (any Channel) throws -> Bool
    ) {
        self.connection = connection
        self.health = health
        self.start = start
    }

    // MARK: The request

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch (unwrapInboundIn(data), state) {
        case (.head(let head), .idle):
            connection.streamHeadReceived()
            awaitsBody = true
            state = .held(head)
        case (.body, .held), (.body, .started), (.body, .answered):
            awaitsBody = false
            admit(context, hasBody: true)
            if case .started = state { context.fireChannelRead(data) }
        case (.end, .held), (.end, .started), (.end, .answered):
            isComplete = true
            awaitsBody = false
            connection.requestEnded()
            admit(context, hasBody: false)
            if case .started = state { context.fireChannelRead(data) }
        // After a malformed head.
        case (.head, _), (.body, .idle), (.end, .idle): break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        // The end of a request without a body mostly comes with its head. A health check waits for it, because with a
        // body it would need a task.
        if case .held(let head) = state, HealthCheck(head) == nil { admit(context, hasBody: true) }
        context.fireChannelReadComplete()
    }

    /// The request is malformed, or the peer has reset the stream.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        reset(context, .protocolError)
        context.fireErrorCaught(error)
    }

    /// Admits the request whose head is held, if one is.
    private func admit(_ context: ChannelHandlerContext, hasBody: Bool) {
        guard case .held(var head) = state else { return }
        if head.headerFields.count > StreamAdmissionHandler.headerFieldsMaximum {
            answer(context, .requestHeaderFieldsTooLarge)
            return
        }
        if !hasBody, let check = HealthCheck(head) {
            let startedAt = ContinuousClock.now
            connection.streamHasHealthCheck()
            let reply = health.reply(to: check)
            answer(
                context,
                reply.status,
                reply.fields,
                head.method == .head ? nil : reply.body,
                reply.body.readableBytes
            )
            health.count(check, head.method.rawValue, reply, .now - startedAt)
            return
        }
        // RFC 9113, 8.3.1: a proxy may leave the field Host as it is.
        if head.authority == nil { head.authority = head.headerFields[.host] }
        // In HTTP/1.1 a body without a length has this field, which the routes look for.
        if hasBody, head.headerFields[.contentLength] == nil { head.headerFields[.transferEncoding] = "chunked" }
        do {
            guard try start(context.channel) else {
                refuse(context)
                return
            }
        } catch {
            state = .answered
            context.close(promise: nil)
            return
        }
        state = .started
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    func channelInactive(context: ChannelHandlerContext) {
        outputTimer?.cancel()
        if case .idle = state {
        } else {
            if !isComplete {
                connection.requestEnded()
                // Without an error the body would seem to end here, and half a request would be executed.
                context.fireErrorCaught(Incomplete())
            }
            connection.streamEnded()
        }
        context.fireChannelInactive()
    }

    // MARK: The response

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head):
            // RFC 9113, 8.2.2: a field of HTTP/1.1 only.
            head.headerFields[.connection] = nil
            head.headerFields.avoidIndexing()
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body:
            context.write(data, promise: promise)
        case .end:
            // Flow control can hold it back, also when all before it was sent.
            isEndUnsent = true
            startOutputTimer(context)
            let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            sent.futureResult.whenComplete { _ in
                let (handler, context) = bound.value
                handler.endSent(context)
            }
            context.write(data, promise: sent)
        }
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is BodyRequest else { return context.triggerUserOutboundEvent(event, promise: promise) }
        if awaitsBody {
            context.writeAndFlush(wrapOutboundOut(.head(HTTPResponse(status: .continue))), promise: nil)
        }
        promise?.succeed()
    }

    private func endSent(_ context: ChannelHandlerContext) {
        isEndUnsent = false
        outputTimer?.cancel()
        // RFC 9113, 8.1: the peer need not send the rest, and keeps the response. The task would wait for the rest.
        if !isComplete { reset(context, .noError) }
    }

    private func reset(_ context: ChannelHandlerContext, _ code: NIOHTTP2.HTTP2ErrorCode) {
        context.triggerUserOutboundEvent(NIOHTTP2FramePayloadToHTTPEvent.reset(code: code), promise: nil)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if !context.channel.isWritable {
            startOutputTimer(context)
        } else if !isEndUnsent {
            outputTimer?.cancel()
            outputTimer = nil
        }
        context.fireChannelWritabilityChanged()
    }

    private func startOutputTimer(_ context: ChannelHandlerContext) {
        guard outputTimer == nil else { return }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        outputTimer = context.eventLoop.scheduleTask(in: connection.outputTimeout) {
            let (handler, context) = bound.value
            handler.connection.countOutputTimeout()
            context.close(promise: nil)
        }
    }

    private func refuse(_ context: ChannelHandlerContext) {
        var (fields, body) = Problem.tooManyRequests.message
        fields[.xContentTypeOptions] = "nosniff"
        answer(context, .serviceUnavailable, fields, body, body.readableBytes)
    }

    private func answer(
        _ context: ChannelHandlerContext,
        _ status: HTTPResponse.Status,
        _ fields: HTTPFields = [:],
        _ body: ByteBuffer? = nil,
        _ length: Int = 0
    ) {
        state = .answered
        var head = HTTPResponse(status: status, headerFields: fields)
        head.headerFields[.date] = health.date.now
        head.headerFields[.contentLength] = "\(length)"
        write(context: context, data: wrapOutboundOut(.head(head)), promise: nil)
        if let body, body.readableBytes > 0 {
            write(context: context, data: wrapOutboundOut(.body(body)), promise: nil)
        }
        write(context: context, data: wrapOutboundOut(.end(nil)), promise: nil)
        context.flush()
    }
}

extension HTTPFields {
    /// The peer chooses how large the library's table of fields grows that were sent before (RFC 9113, 6.5.2). Only
    /// those with few different values may enter it.
    fileprivate mutating func avoidIndexing() {
        for index in indices where !HTTPField.Name.fewValued.contains(self[index].name) {
            self[index].indexingStrategy = .avoid
        }
    }
}

extension HTTPField.Name {
    fileprivate static let fewValued: Set = [
        contentType, cacheControl, xContentTypeOptions, vary, contentLanguage, contentSecurityPolicy, wwwAuthenticate,
    ]
    fileprivate static let host = HTTPField.Name("Host")!
}
