import Foundation
import NIOCore
import OutgoingHTTP

/// What a collector has answered to spans, as OTLP defines it
/// (https://opentelemetry.io/docs/specs/otlp/#otlphttp-response).
enum CollectorAnswer: Equatable {
    /// - Parameter rejected: how many of the spans it does not want, and why.
    case accepted(rejected: Int = 0, reason: String? = nil)
    /// The same request may succeed later.
    case unavailable(String, retryAfter: Duration?)
    /// The same request would be refused again.
    case refused(String)

    init(_ result: HTTPSender.Result) {
        switch result {
        case .failure(let problem): self = .unavailable(problem, retryAfter: nil)
        case .answer(let status, let retryAfter, let body):
            switch status {
            case 200..<300: self = CollectorAnswer.accepted(body)
            case 429, 502, 503, 504:
                let seconds = retryAfter.flatMap { Int64($0) }.flatMap { (0...3_600).contains($0) ? $0 : nil }
                self = .unavailable("HTTP \(status)", retryAfter: seconds.map { .seconds($0) })
            case 300..<400: self = .refused("HTTP \(status): redirects are not followed; set the final URL")
            default: self = .refused("HTTP \(status)")
            }
        }
    }

    private struct Body: Decodable {
        struct Partial: Decodable {
            var rejectedSpans: Count?
            var errorMessage: String?
        }
        var partialSuccess: Partial?
    }

    /// A number of 64 bits, which is a text in JSON. Some collectors send a number.
    private struct Count: Decodable {
        var value: Int

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let number = try? container.decode(Int.self) {
                value = number
            } else {
                value = Int(try container.decode(String.self)) ?? 0
            }
        }
    }

    /// A body that cannot be read says nothing about the spans.
    private static func accepted(_ body: ByteBuffer) -> CollectorAnswer {
        guard let partial = try? JSONDecoder().decode(Body.self, from: Data(body.readableBytesView)).partialSuccess,
            let rejected = partial.rejectedSpans?.value, rejected > 0
        else { return .accepted() }
        return .accepted(rejected: rejected, reason: partial.errorMessage.map { String($0.prefix(200)) })
    }
}
