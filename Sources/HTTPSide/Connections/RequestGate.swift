import HTTPTypes
import LineProtocol
import NIOCore
import NIOHTTP1

/// Stands behind the HTTP decoder: tells the gate where requests begin and end, and refuses those for which there is no
/// place.
final class RequestGate: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let gate: ConnectionGate
    private var isRefused = false

    /// The peer has so long to read the refusal.
    private static let closeDelay = TimeAmount.seconds(1)

    init(_ gate: ConnectionGate) {
        self.gate = gate
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // What comes after a refused request is thrown away with it.
        if isRefused { return }
        switch unwrapInboundIn(data) {
        case .head(let head):
            guard gate.requestBegins(asksForHealth: RequestGate.asksForHealth(head)) else {
                refuse(context, head)
                return
            }
        case .body: break
        case .end: gate.requestEnds()
        }
        context.fireChannelRead(data)
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

    /// Without a body, which could be long in coming.
    static func asksForHealth(_ head: HTTPRequestHead) -> Bool {
        guard head.method == .GET || head.method == .HEAD, !head.headers.contains(name: "Transfer-Encoding"),
            head.headers["Content-Length"].allSatisfy({ $0 == "0" })
        else { return false }
        let path = head.uri.prefix { $0 != "?" }
        return path == "/healthz" || path == "/readyz"
    }

    // MARK: Refusal

    private static let noPlace = Problem(
        ReplyError(
            code: .overloaded,
            text: "as many requests as may be are under way; try again, or raise http-connections-maximum and, where "
                + "it is set, http-connections-per-address-maximum"
        )
    )

    private func refuse(_ context: ChannelHandlerContext, _ request: HTTPRequestHead) {
        isRefused = true
        let (fields, body) = RequestGate.noPlace.message
        var headers = HTTPHeaders(fields.map { ($0.name.rawName, $0.value) })
        headers.replaceOrAdd(name: "Content-Length", value: "\(body.readableBytes)")
        headers.replaceOrAdd(name: "Connection", value: "close")
        headers.replaceOrAdd(name: HTTPField.Name.xContentTypeOptions.rawName, value: "nosniff")
        let head = HTTPResponseHead(version: .http1_1, status: .serviceUnavailable, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if request.method != .HEAD { context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        // Closed at once, the kernel could discard the answer where the peer still sends.
        let gate = NIOLoopBound(gate, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: RequestGate.closeDelay) { gate.value.close() }
    }
}
