import HTTPTypes
import NIOCore
import NIOHTTP1

/// Follows the HTTP decoder: reports requests to the limiter, answers health checks, and refuses requests over the
/// limit. A connection reaches Hummingbird only with its first request of another kind.
final class RequestAdmissionHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Hummingbird's part of a connection, which is idle until it is started.
    struct HummingbirdConnection {
        /// - Returns: false if Hummingbird accepts no more connections.
        var start: () -> Bool
        /// It is called when the connection has ended, started or not.
        var finish: () -> Void
    }

    private let connection: ConnectionLimitHandler
    private let health: HealthResponder
    private let hummingbird: HummingbirdConnection
    private var isStarted = false
    private var isRefused = false
    /// A head was received, and nothing after it.
    private var awaitsBody = false
    /// A health check whose head has been received; it is answered when the request ends.
    private var pending: (check: HealthCheck, head: HTTPRequestHead, startedAt: ContinuousClock.Instant)?

    /// The time that the peer gets to read a refusal.
    private static let closeDelay = TimeAmount.seconds(1)

    init(_ connection: ConnectionLimitHandler, health: HealthResponder, hummingbird: HummingbirdConnection) {
        self.connection = connection
        self.health = health
        self.hummingbird = hummingbird
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Input after a refused request is discarded.
        if isRefused { return }
        switch unwrapInboundIn(data) {
        case .head(let head):
            awaitsBody = head.version != .http1_0
            begin(context, head, data)
        case .body:
            awaitsBody = false
            if pending == nil { context.fireChannelRead(data) }
        case .end:
            awaitsBody = false
            end(context, data)
        }
    }

    private func begin(_ context: ChannelHandlerContext, _ head: HTTPRequestHead, _ data: NIOAny) {
        let check = HealthCheck(head)
        guard connection.requestBegan(isHealthCheck: check != nil) else {
            refuse(context, head)
            return
        }
        // Behind a request that Hummingbird is answering, Hummingbird gets a health check too: responses must be in
        // order.
        if let check, connection.unanswered <= 1 {
            pending = (check, head, .now)
            return
        }
        if !isStarted {
            guard hummingbird.start() else {
                connection.close()
                return
            }
            isStarted = true
        }
        context.fireChannelRead(data)
    }

    private func end(_ context: ChannelHandlerContext, _ data: NIOAny) {
        connection.requestEnded()
        guard let (check, head, startedAt) = pending else {
            context.fireChannelRead(data)
            return
        }
        pending = nil
        answer(context, check, head, since: startedAt)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head) where health.isDraining:
            // A client that reads this opens another connection, and so does not meet the end of this one.
            head.headers.replaceOrAdd(name: "Connection", value: "close")
            return context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .head, .body: return context.write(data, promise: promise)
        case .end: break
        }
        connection.responseWritten()
        let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
        let connection = NIOLoopBound(connection, eventLoop: context.eventLoop)
        sent.futureResult.whenComplete { _ in connection.value.responseSent() }
        context.write(data, promise: sent)
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is BodyRequest else { return context.triggerUserOutboundEvent(event, promise: promise) }
        if awaitsBody {
            let head = HTTPResponseHead(version: .http1_1, status: .continue)
            context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
        }
        promise?.succeed()
    }

    // MARK: Closing

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // A started connection is closed by Hummingbird.
        if !isStarted, connection.unanswered == 0, case .some(ChannelEvent.inputClosed) = event as? ChannelEvent {
            connection.close()
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // What follows is no HTTP.
        if error is HTTPParserError { connection.dropInput() }
        if isRefused { return }
        if isStarted {
            context.fireErrorCaught(error)
        } else if error is HTTPParserError {
            refuse(context, response(.badRequest, HTTPHeaders(), ByteBuffer(), closes: true))
        } else {
            connection.close()
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        context.fireChannelInactive()
        hummingbird.finish()
    }

    // MARK: Responses

    private func answer(
        _ context: ChannelHandlerContext,
        _ check: HealthCheck,
        _ request: HTTPRequestHead,
        since startedAt: ContinuousClock.Instant
    ) {
        let reply = health.reply(to: check)
        let headers = HTTPHeaders(reply.fields.map { ($0.name.rawName, $0.value) })
        let status = HTTPResponseStatus(statusCode: reply.status.code)
        let parts = response(status, headers, reply.body, to: request, closes: !request.isKeepAlive)
        health.count(check, request.method.rawValue, reply, .now - startedAt)
        let sent = context.eventLoop.makePromise(of: Void.self)
        if !request.isKeepAlive {
            let context = NIOLoopBound(context, eventLoop: context.eventLoop)
            sent.futureResult.whenComplete { _ in context.value.close(promise: nil) }
        }
        for part in parts { write(context: context, data: wrapOutboundOut(part), promise: nil) }
        write(context: context, data: wrapOutboundOut(.end(nil)), promise: sent)
        context.flush()
    }

    private func refuse(_ context: ChannelHandlerContext, _ request: HTTPRequestHead) {
        let (fields, body) = Problem.tooManyRequests.message
        var headers = HTTPHeaders(fields.map { ($0.name.rawName, $0.value) })
        headers.replaceOrAdd(name: HTTPField.Name.xContentTypeOptions.rawName, value: "nosniff")
        refuse(context, response(.serviceUnavailable, headers, body, to: request, closes: true))
    }

    private func refuse(_ context: ChannelHandlerContext, _ parts: [HTTPServerResponsePart]) {
        isRefused = true
        for part in parts { context.write(wrapOutboundOut(part), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        // If it were closed at once while the peer still sends, the kernel could discard the response.
        let connection = NIOLoopBound(connection, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: RequestAdmissionHandler.closeDelay) { connection.value.close() }
    }

    /// A response without its end.
    private func response(
        _ status: HTTPResponseStatus,
        _ headers: HTTPHeaders,
        _ body: ByteBuffer,
        to request: HTTPRequestHead? = nil,
        closes: Bool
    ) -> [HTTPServerResponsePart] {
        var headers = headers
        headers.replaceOrAdd(name: "Date", value: health.date.now)
        headers.replaceOrAdd(name: "Content-Length", value: "\(body.readableBytes)")
        if closes { headers.replaceOrAdd(name: "Connection", value: "close") }
        let head = HTTPServerResponsePart.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))
        return request?.method == .HEAD || body.readableBytes == 0 ? [head] : [head, .body(.byteBuffer(body))]
    }
}
