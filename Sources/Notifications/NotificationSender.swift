import Engine
import NIOCore
import OutgoingHTTP
import ServiceCore

/// Sends notifications to the product's backend.
package final class NotificationSender: Sendable {
    /// The most requests at the same time.
    static let requestsMaximum = 16
    private static let timeout = Duration.seconds(15)

    private let signer: NotificationSigner
    private let sender: HTTPSender

    package init(url: String, _ signer: NotificationSigner) {
        self.signer = signer
        sender = HTTPSender(
            url: url,
            connections: NotificationSender.requestsMaximum,
            timeout: NotificationSender.timeout
        )
    }

    package func close() async {
        await sender.close()
    }

    /// Sends a request. It does not throw: what failed is in the result.
    ///
    /// - Returns: nil if the task was cancelled before there was an answer.
    func send(_ due: NotificationOutbox.Due) async -> AttemptResult? {
        let fields = signer.headers(id: due.id, sentAt: due.sentAt, body: due.body)
        let agent = (name: "User-Agent", value: HeadroomVersion.userAgent)
        return switch await sender.post(json: ByteBuffer(string: due.body), fields + [agent]) {
        // The body of the answer is ignored.
        case .answer(let status, let retryAfter, _): AttemptResult(status: status, retryAfter: retryAfter)
        case .failure(let problem): .failed(problem: problem)
        case nil: nil
        }
    }
}

extension NotificationSender {
    /// Sends a signed request that is about no user.
    ///
    /// - Parameter now: seconds since 1970.
    /// - Returns: what failed; nil if it was delivered.
    package func sendTest(id: String, now: Int64, at: String) async -> String? {
        let body = #"{"type":"test","timestamp":"\#(at)","data":{}}"#
        let due = NotificationOutbox.Due(id: id, body: body, attempts: 0, sentAt: now)
        return switch await send(due) {
        case .delivered: nil
        case .failed(let problem, _): problem
        case nil: "interrupted"
        }
    }
}
