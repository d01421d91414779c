import CLibPQ

/// What the server said beside a result: a WARNING, a NOTICE. Not an error; but see `SQLState.warning`.
public struct Warning: Sendable, Hashable {
    /// In English whatever the server's language: WARNING, NOTICE, INFO, LOG, DEBUG.
    public let severity: String
    public let sqlState: SQLState
    public let message: String
}

/// Gathers the notices of the statement under way.
///
/// libpq calls `receive` from within PQconsumeInput and PQgetResult, so on the connection's own thread.
final class NoticeCollector {
    /// A statement that raises a notice per row must not fill the memory. Warnings are kept before all others: whether
    /// a commit reached the standby must not depend on how talkative the statement was.
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

    /// Must be called before anything arrives that is worth gathering; without it libpq prints notices to standard
    /// error. The collector has to live as long as the connection.
    func attach(to handle: OpaquePointer) {
        let receiver: PQnoticeReceiver = { context, result in
            guard let context, let result else { return }
            Unmanaged<NoticeCollector>.fromOpaque(context).takeUnretainedValue().receive(result)
        }
        PQsetNoticeReceiver(handle, receiver, Unmanaged.passUnretained(self).toOpaque())
    }
}
