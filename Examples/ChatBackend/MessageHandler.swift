import HeadroomClient
import Logging

/// Answers one message: holds it, calls the chosen model, and counts it once the answer is complete.
struct MessageHandler: Sendable {
    var headroom: HeadroomClient
    let models: [ModelChoice]
    let conversations: Conversations
    let logger: Logger

    /// A longer answer is cut: a model that never ends must not fill the memory.
    static let answerBytesMaximum = 32_768
    /// Longer than a model may take, because an answer whose hold has expired is not counted.
    private static let holdTTL = OpenAIModel.answerTimeout + .seconds(60)

    private struct Piece: Encodable {
        var text: String
    }

    private struct Sent: Encodable {
        var message: Message
        var usage: UsageObject
    }

    private struct Failed: Encodable {
        var message: String
        /// The page sends the message again by itself.
        var canRetry: Bool
    }

    /// The same handler for a user who reads a language, and lives in a time zone.
    func answering(in language: LanguageTag, timeZone: CivilTimeZone?) -> MessageHandler {
        var handler = self
        handler.headroom = headroom.answering(in: language, timeZone: timeZone)
        return handler
    }

    /// Sends the events `held`, `piece` …, `sent`; or `blocked`; or `failed`.
    ///
    /// When the browser closes the connection before the end, this task is cancelled and `withHold` gives the message
    /// back.
    func answer(_ message: Message, of user: UserID, with choice: ModelChoice, _ events: EventStream) async {
        switch await conversations.start(message, of: user) {
        case .new(let conversation):
            await answer(message, of: user, with: choice, in: conversation, events)
            await conversations.finish(message)
        case .answered(let answer):
            events.send("piece", Piece(text: answer.text))
            await sendAnswer(answer, to: user, nil, events)
        case .busy:
            events.send("failed", Failed(message: "This message is still being answered.", canRetry: true))
        case .conflict:
            events.send("failed", Failed(message: "This message's id belongs to another one.", canRetry: false))
        }
    }

    private func answer(
        _ message: Message,
        of user: UserID,
        with choice: ModelChoice,
        in conversation: [Message],
        _ events: EventStream
    ) async {
        do {
            let outcome = try await headroom.withHold(user, ttl: MessageHandler.holdTTL, model: choice.name) { hold in
                events.send("held", await latestUsage(of: user, hold.status))
                return try await generateAnswer(to: conversation, choice.model, events)
            }
            switch outcome {
            case .blocked(let status, _):
                events.send("blocked", await latestUsage(of: user, status))
            case .completed(let text, let decision):
                let answer = await conversations.add(message, answer: text, of: user)
                await sendAnswer(answer, to: user, decision.status, events)
            case .expired(let text), .uncommitted(let text, _):
                // The user has read the answer. It is free, or the client counts it later.
                let answer = await conversations.add(message, answer: text, of: user)
                await sendAnswer(answer, to: user, nil, events)
            }
        } catch is CancellationError {
            // The browser has closed the connection: no events are read.
        } catch let error as HeadroomError {
            logger.notice("a message was not held", metadata: ["code": "\(error.code)"])
            let text = "I couldn't send that just now. Nothing was counted — please try again."
            events.send("failed", Failed(message: text, canRetry: error.isTransient))
        } catch {
            logger.warning("a message was not answered", metadata: ["error": "\(error)"])
            let text = "I couldn't finish that answer. Nothing was counted — please try again."
            events.send("failed", Failed(message: text, canRetry: false))
        }
    }

    private func generateAnswer(
        to conversation: [Message],
        _ model: any Model,
        _ events: EventStream
    ) async throws -> String {
        var text = ""
        for try await piece in model.answer(to: conversation) {
            events.send("piece", Piece(text: piece))
            text += piece
            if text.utf8.count > MessageHandler.answerBytesMaximum { break }
        }
        try Task.checkCancellation()
        // An error gives the message back.
        if text.isEmpty { throw ModelError("the model returned an empty answer") }
        return text
    }

    private func sendAnswer(_ answer: Message, to user: UserID, _ status: UsageStatus?, _ events: EventStream) async {
        events.send("sent", Sent(message: answer, usage: await latestUsage(of: user, status)))
    }

    /// The answers to counting requests lack the plan's label and the sentence for screen readers; `usage` has them.
    ///
    /// - Parameter status: the latest answer; nil after a request without one.
    private func latestUsage(of user: UserID, _ status: UsageStatus?) async -> UsageObject {
        // Headroom was unreachable a moment ago.
        if let status, status.isDegraded { return UsageObject(status: status, language: headroom.language) }
        var latest =
            (try? await headroom.usage(of: user, with: models))
            ?? UsageObject(status: status ?? .degraded(user), language: headroom.language)
        // Only the refusal itself has the reason of a limit. That of a model is in `models`.
        if latest.status.display == .blocked { latest.status.reason = latest.status.reason ?? status?.reason }
        return latest
    }
}
