import NIOCore
import NIOHTTP2

/// Ends a connection of HTTP/2 two seconds after an error of the connection, which the library has reported to the
/// peer; nothing is read any more. An error of one request has ended that stream only: behind a proxy, the others are
/// those of other people.
final class MultiplexedErrorHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// How long open streams get.
    private static let graceTime = TimeAmount.seconds(2)

    private let connection: ConnectionLimitHandler
    private var isEnding = false

    init(_ connection: ConnectionLimitHandler) {
        self.connection = connection
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !isEnding, !MultiplexedErrorHandler.isOfOneStream(error) else { return }
        isEnding = true
        connection.stopInput()
        if error is FrameInputHandler.TooManyFrames {
            let payload = HTTP2Frame.FramePayload.goAway(
                lastStreamID: .maxID,
                errorCode: .enhanceYourCalm,
                opaqueData: nil
            )
            context.writeAndFlush(wrapOutboundOut(HTTP2Frame(streamID: .rootStream, payload: payload)), promise: nil)
        }
        context.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        let bound = NIOLoopBound((connection, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: MultiplexedErrorHandler.graceTime) {
            let (connection, context) = bound.value
            // TLS says that this is the end, and would then wait for the peer to say so.
            context.close(promise: nil)
            connection.close()
        }
    }
}

extension MultiplexedErrorHandler {
    /// Whether the library has answered the error with RST_STREAM: a malformed head, or a body of another length than
    /// announced.
    private static func isOfOneStream(_ error: any Error) -> Bool {
        switch error {
        case is NIOHTTP2Errors.StreamError, is NIOHTTP2Errors.DuplicatePseudoHeader,
            is NIOHTTP2Errors.PseudoHeaderAfterRegularHeader, is NIOHTTP2Errors.UnknownPseudoHeader,
            is NIOHTTP2Errors.UnsupportedPseudoHeader, is NIOHTTP2Errors.InvalidPseudoHeaders,
            is NIOHTTP2Errors.InvalidPseudoHeaderValue, is NIOHTTP2Errors.EmptyPathHeader,
            is NIOHTTP2Errors.InvalidHTTP2HeaderFieldName, is NIOHTTP2Errors.InvalidHTTP2HeaderFieldValue,
            is NIOHTTP2Errors.ForbiddenHeaderField, is NIOHTTP2Errors.TrailersWithoutEndStream,
            is NIOHTTP2Errors.ContentLengthViolated, is NIOHTTP2Errors.ContentLengthHeadersMismatch,
            is NIOHTTP2Errors.ContentLengthHeaderNegative, is NIOHTTP2Errors.ContentLengthHeaderMalformedValue:
            true
        default: false
        }
    }
}
