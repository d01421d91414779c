import HeadroomClient
import Logging

/// One message and its answer: held before, counted after, given back when there is no answer.
struct Exchange: Sendable {
    let headroom: HeadroomClient
    let model: any Model
    let usage: UsageReading
    let holdTTL: Duration
    let logger: Logger

    /// Longer answers are cut off: a model that never ends must not fill the memory.
    static let answerBytesMaximum = 32_768

    /// As long as a model may take, where nothing else is said: a hold has to last longer, or the answer is not counted.
    static let answerTimeMaximum = Duration.seconds(300)

    private struct Piece: Encodable {
        var text: String
    }

    private struct Sent: Encodable {
        var message: Message
        var usage: UsageObject
    }

    private struct Failed: Encodable {
        var code: String
        var message: String
        var canRetry: Bool
    }

    /// Answers a message. Who stops reading before the end is gone: then what was held is given back.
    func events(answering turn: Conversations.Turn) -> BeingTold<ServerSentEvent> {
        // Without a bound of its own, because an answer has one: a browser that reads slowly must not outlast the hold.
        BeingTold(keeping: .unbounded) { tell in await run(turn, tell) }
    }

    private func run(_ turn: Conversations.Turn, _ tell: AsyncStream<ServerSentEvent>.Continuation) async {
        do {
            let outcome = try await headroom.withHold(turn.user, ttl: holdTTL) { hold in
                tell.yield(ServerSentEvent("held", UsageObject(await usage.complete(hold.status))))
                return try await answer(turn, tell)
            }
            tell.yield(await conclusion(turn, outcome))
        } catch is CancellationError {
            // Nobody reads any more, and what was held is given back.
        } catch let error as HeadroomError {
            logger.notice("a message could not be held", metadata: ["code": "\(error.code)"])
            let words = "I couldn't send that just now. Nothing was counted — please try again."
            tell.yield(failed(error.code.rawValue, words, canRetry: error.isTransient))
        } catch let error as ModelError {
            logger.warning("a message was not answered", metadata: ["detail": "\(error.detail)"])
            tell.yield(failed("MODEL", error.words, canRetry: error.canRetry))
        } catch {
            logger.error("a message was not answered", metadata: ["error.type": "\(type(of: error))"])
            tell.yield(failed("INTERNAL", ModelError.apology, canRetry: true))
        }
    }

    private func answer(
        _ turn: Conversations.Turn,
        _ tell: AsyncStream<ServerSentEvent>.Continuation
    ) async throws -> String {
        var text = ""
        for try await piece in model.answer(to: turn.conversation) {
            tell.yield(ServerSentEvent("piece", Piece(text: piece)))
            text += piece
            if text.utf8.count > Exchange.answerBytesMaximum { break }
        }
        // Nobody pays for nothing. Whoever stopped it is not told, and withHold gives the message back.
        if text.isEmpty, !Task.isCancelled { throw ModelError(detail: "the model had no answer") }
        return text
    }

    /// The user has the answer, whatever became of the hold.
    private func conclusion(_ turn: Conversations.Turn, _ outcome: HoldOutcome<String>) async -> ServerSentEvent {
        switch outcome {
        case .blocked(let status, _):
            return ServerSentEvent("blocked", UsageObject(await usage.complete(status)))
        case .completed(let answer, let decision):
            return sent(turn.keep(answer: answer), await usage.complete(decision.status))
        case .expired(let answer), .uncommitted(let answer, _):
            // A present, or counted later: only the service knows where the user stands now.
            return sent(turn.keep(answer: answer), await usage.usage(of: turn.user) ?? .degraded(turn.user))
        }
    }

    /// An answer that was given before, for who did not hear the end of it.
    func events(repeating answer: Message, of user: UserID) -> BeingTold<ServerSentEvent> {
        BeingTold(keeping: .unbounded) { tell in
            tell.yield(ServerSentEvent("piece", Piece(text: answer.text)))
            tell.yield(sent(answer, await usage.usage(of: user) ?? .degraded(user)))
        }
    }

    private func sent(_ message: Message, _ status: UsageStatus) -> ServerSentEvent {
        ServerSentEvent("sent", Sent(message: message, usage: UsageObject(status)))
    }

    private func failed(_ code: String, _ words: String, canRetry: Bool) -> ServerSentEvent {
        ServerSentEvent("failed", Failed(code: code, message: words, canRetry: canRetry))
    }
}
