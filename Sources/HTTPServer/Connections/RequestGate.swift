import HTTPTypes
import LineProtocol
import NIOCore
import NIOHTTP1

/// Stands behind the HTTP decoder: tells the gate where requests begin and end, answers those about health, and refuses
/// those for which there is no place. A connection reaches the framework with its first request of another kind.
final class RequestGate: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The framework's part of a connection, which does nothing before it is accepted.
    struct Framework {
        /// - Returns: false where it takes none any more.
        var accept: () -> Bool
        /// The connection has ended.
        var end: () -> Void
    }

    private let gate: ConnectionGate
    private let health: Health
    private let framework: Framework
    private var isWithFramework = false
    private var isRefused = false
    /// Its head came, and it is answered when it ends.
    private var question: (question: Health.Question, head: HTTPRequestHead, began: ContinuousClock.Instant)?

    /// The peer has so long to read the refusal.
    private static let closeDelay = TimeAmount.seconds(1)

    init(_ gate: ConnectionGate, health: Health, framework: Framework) {
        self.gate = gate
        self.health = health
        self.framework = framework
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // What comes after a refused request is thrown away with it.
        if isRefused { return }
        switch unwrapInboundIn(data) {
        case .head(let head): begin(context, head, data)
        case .body: if question == nil { context.fireChannelRead(data) }
        case .end: end(context, data)
        }
    }

    private func begin(_ context: ChannelHandlerContext, _ head: HTTPRequestHead, _ data: NIOAny) {
        let asked = Health.Question(head)
        guard gate.requestBegins(asksForHealth: asked != nil) else {
            refuse(context, head)
            return
        }
        // Behind a request that the framework has not answered, it is the framework's as well: answers have an order.
        if let asked, gate.unanswered <= 1 {
            question = (asked, head, .now)
            return
        }
        if !isWithFramework {
            guard framework.accept() else {
                gate.close()
                return
            }
            isWithFramework = true
        }
        context.fireChannelRead(data)
    }

    private func end(_ context: ChannelHandlerContext, _ data: NIOAny) {
        gate.requestEnds()
        guard let question else {
            context.fireChannelRead(data)
            return
        }
        self.question = nil
        answer(context, question.question, question.head, since: question.began)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .end = unwrapOutboundIn(data) else {
            context.write(data, promise: promise)
            return
        }
        gate.answerIsWritten()
        let sent = promise ?? context.eventLoop.makePromise(of: Void.self)
        let gate = NIOLoopBound(gate, eventLoop: context.eventLoop)
        sent.futureResult.whenComplete { _ in gate.value.answerIsSent() }
        context.write(data, promise: sent)
    }

    // MARK: The end

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // Where the framework has it, the framework ends it.
        if !isWithFramework, gate.unanswered == 0, case .some(ChannelEvent.inputClosed) = event as? ChannelEvent {
            gate.close()
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if isRefused { return }
        if isWithFramework {
            context.fireErrorCaught(error)
        } else if error is HTTPParserError {
            refuse(context, .badRequest, fields: HTTPHeaders(), body: nil)
        } else {
            gate.close()
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        context.fireChannelInactive()
        framework.end()
    }

    // MARK: Answers

    private func answer(
        _ context: ChannelHandlerContext,
        _ question: Health.Question,
        _ request: HTTPRequestHead,
        since began: ContinuousClock.Instant
    ) {
        let answer = health.answer(question)
        var headers = HTTPHeaders(answer.fields.map { ($0.name.rawName, $0.value) })
        headers.replaceOrAdd(name: "Content-Length", value: "\(answer.body.readableBytes)")
        if !request.isKeepAlive { headers.replaceOrAdd(name: "Connection", value: "close") }
        let status = HTTPResponseStatus(statusCode: answer.status.code)
        let head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        health.count(question, request.method.rawValue, answer, .now - began)
        let sent = context.eventLoop.makePromise(of: Void.self)
        let context = NIOLoopBound(context, eventLoop: context.eventLoop)
        if !request.isKeepAlive {
            sent.futureResult.whenComplete { _ in context.value.close(promise: nil) }
        }
        write(context: context.value, data: wrapOutboundOut(.head(head)), promise: nil)
        if request.method != .HEAD {
            write(context: context.value, data: wrapOutboundOut(.body(.byteBuffer(answer.body))), promise: nil)
        }
        write(context: context.value, data: wrapOutboundOut(.end(nil)), promise: sent)
        context.value.flush()
    }

    private static let noPlace = Problem(
        ReplyError(
            code: .overloaded,
            text: "as many requests as may be are under way; try again, or raise http-connections-maximum and, where "
                + "it is set, http-connections-per-address-maximum"
        )
    )

    private func refuse(_ context: ChannelHandlerContext, _ request: HTTPRequestHead) {
        let (fields, body) = RequestGate.noPlace.message
        var headers = HTTPHeaders(fields.map { ($0.name.rawName, $0.value) })
        headers.replaceOrAdd(name: HTTPField.Name.xContentTypeOptions.rawName, value: "nosniff")
        headers.replaceOrAdd(name: "Content-Length", value: "\(body.readableBytes)")
        refuse(context, .serviceUnavailable, fields: headers, body: request.method == .HEAD ? nil : body)
    }

    private func refuse(
        _ context: ChannelHandlerContext,
        _ status: HTTPResponseStatus,
        fields: HTTPHeaders,
        body: ByteBuffer?
    ) {
        isRefused = true
        var headers = fields
        headers.replaceOrAdd(name: "Date", value: health.date.now)
        headers.replaceOrAdd(name: "Connection", value: "close")
        if !headers.contains(name: "Content-Length") { headers.add(name: "Content-Length", value: "0") }
        let head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if let body { context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        // Closed at once, the kernel could discard the answer where the peer still sends.
        let gate = NIOLoopBound(gate, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: RequestGate.closeDelay) { gate.value.close() }
    }
}
