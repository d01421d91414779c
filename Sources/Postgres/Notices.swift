import CLibPQ

/// A message of the server that is not an error: a WARNING or a NOTICE. See `SQLState.warning`.
public struct Warning: Sendable, Hashable {
    /// The severity, in English for any language of the server: WARNING, NOTICE, INFO, LOG or DEBUG.
    public let severity: String
    public let sqlState: SQLState
    public let message: String

    /// Whether Citus had sent COMMIT to another server, which did not answer. Citus reports this as a warning, and then
    /// may or may not fail with an error. Its messages are never translated.
    var isAboutLostCommit: Bool { message.hasPrefix("failed to commit transaction on ") }
}

/// Collects the notices of the current statement.
///
/// libpq calls `receive` within PQconsumeInput and PQgetResult, and so on the connection's own thread.
final class NoticeCollector {
    /// The most notices that are kept, because a statement that raises one per row must not fill the memory. Warnings
    /// replace other notices, because they report whether a commit reached the standby.
    static let limit = 64

    private(set) var warnings: [Warning] = []

    func receive(_ result: OpaquePointer) {
        let isWarning = text(result, "V") == "WARNING"
        if warnings.count >= NoticeCollector.limit {
            guard isWarning, let other = warnings.firstIndex(where: { $0.severity != "WARNING" }) else { return }
            warnings.remove(at: other)
        }
        warnings.append(
            Warning(
                severity: text(result, "V") ?? text(result, "S") ?? "NOTICE",
                sqlState: SQLState(rawValue: text(result, "C") ?? "00000"),
                message: text(result, "M") ?? ""
            )
        )
    }

    func clear() {
        warnings.removeAll(keepingCapacity: true)
    }

    private func text(_ result: OpaquePointer, _ field: Character) -> String? {
        PQresultErrorField(result, Int32(field.asciiValue ?? 0)).map { String(cString: $0) }
    }

    /// Attaches the collector. Call it before the first statement: until then libpq prints notices to standard error.
    /// The collector must live as long as the connection.
    func attach(to handle: OpaquePointer) {
        let receiver: PQnoticeReceiver = { context, result in
            guard let context, let result else { return }
            Unmanaged<NoticeCollector>.fromOpaque(context).takeUnretainedValue().receive(result)
        }
        PQsetNoticeReceiver(handle, receiver, Unmanaged.passUnretained(self).toOpaque())
    }
}
