import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Does for a stream of HTTP/2 what `RequestAdmissionHandler` does for the requests of an HTTP/1.1 connection: reports
/// it to the connection's limits, answers health checks, and refuses requests over the limit. Also closes a stream
/// whose peer does not read its response.
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

    /// As for HTTP/1.1 (`HTTPTransport`).
    static let headerFieldsMaximum = 100
    /// The time that the peer gets to read a response before its unfinished request is reset.
    private static let closeDelay = TimeAmount.seconds(1)

    private let connection: ConnectionLimitHandler
    private let health: HealthResponder
    /// Starts Hummingbird's task for the stream. Returns false if Hummingbird accepts no more.
    private let start: (any Channel) throws -> Bool
    private var state = State.idle
    private var isComplete = false
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
        switch unwrapInboundIn(data) {
        case .head(let head):
            connection.streamHeadReceived()
            state = .held(head)
        case .body:
            admit(context, hasBody: true)
            if case .started = state { context.fireChannelRead(data) }
        case .end:
            isComplete = true
            connection.requestEnded()
            admit(context, hasBody: false)
            if case .started = state { context.fireChannelRead(data) }
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        // The end of a request without a body comes with its head.
        admit(context, hasBody: true)
        context.fireChannelReadComplete()
    }

    /// Does nothing unless a head is held.
    private func admit(_ context: ChannelHandlerContext, hasBody: Bool) {
        guard case .held(var head) = state else { return }
        if head.headerFields.count > StreamAdmissionHandler.headerFieldsMaximum {
            answer(context, .requestHeaderFieldsTooLarge)
            return
        }
        if let check = HealthCheck(method: head.method.rawValue, path: head.path ?? "", hasBody: hasBody) {
            let startedAt = ContinuousClock.now
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
            if !isComplete { connection.requestEnded() }
            connection.streamEnded()
        }
        context.fireChannelInactive()
    }

    // MARK: The response

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head):
            // RFC 9113, 8.2.2: a field of HTTP/1.1 only. `BodyDecoder` resets the stream instead.
            head.headerFields[.connection] = nil
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body:
            context.write(data, promise: promise)
        case .end:
            // Flow control can hold it back, also when all before it was sent.
            isEndUnsent = true
            startOutputTimer(context)
            let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
            let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
            sent.futureResult.whenComplete { _ in bound.value.endSent() }
            context.write(data, promise: sent)
        }
    }

    private func endSent() {
        isEndUnsent = false
        outputTimer?.cancel()
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
        guard !isComplete else { return }
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: StreamAdmissionHandler.closeDelay) { bound.value.close(promise: nil) }
    }
}
