import Billing
import JSON
import Postgres
import Usage

/// Applies recorded events again, from their stored payloads, after an operator has fixed what made them fail, or after
/// the correction of a translation.
extension BillingLedger {
    /// Translates a recorded event anew and applies it, in one transaction. If it was applied before and cannot be
    /// applied now, nothing changes.
    ///
    /// - Parameter translate: makes an event of a source and its stored payload.
    /// - Returns: nil if there is no such event.
    package func replay(
        _ name: BillingEventLog.Name,
        translate: (_ source: String, _ payload: [UInt8]) throws(BillingError) -> BillingEvent
    ) throws(PostgresError) -> BillingEventLog.ReplayResult? {
        let stored = try connection.query(EmbeddedSQL.readEventPayload, name.parameters, deadline: deadline)
        guard stored.rowCount > 0 else { return nil }
        guard let payload = try stored.firstRow.textOrNil("payload") else {
            return .failed("its contents are no longer stored")
        }
        let link = CustomerLink(source: name.source, payload: (try? JSONValue(parsing: Array(payload.utf8))) ?? .null)
        if let link, link.digests == nil { return BillingEventLog.ReplayResult(try apply(link)) }
        let event: BillingEvent
        do throws(BillingError) {
            if let link { event = link.event } else { event = try translate(name.source, Array(payload.utf8)) }
        } catch {
            return .failed(error.description)
        }
        guard ExactText(event.id) == ExactText(name.id) else { return .failed("its payload belongs to another event") }
        guard let answer = try replay(event) else {
            return .failed("it was applied and could not be now; nothing was changed")
        }
        return BillingEventLog.ReplayResult(answer: answer)
    }
}

extension BillingEventLog.ReplayResult {
    static func failed(_ problem: String) -> BillingEventLog.ReplayResult {
        BillingEventLog.ReplayResult(outcome: "failed", problem: problem)
    }

    fileprivate init(_ result: CustomerLinkResult) {
        switch result {
        case .done(let answer): self.init(answer: answer.jsonText)
        case .notFound(let problem), .invalid(let problem), .refused(let problem): self = .failed(problem)
        }
    }

    /// - Parameter answer: the JSON that `headroom.write_customer` returns.
    fileprivate init(answer: String) {
        let answer = try? JSONValue(parsing: Array(answer.utf8))
        self.init(outcome: answer?["outcome"]?.string ?? "failed", problem: answer?["problem"]?.string)
    }
}

extension BillingEventLog.Name {
    /// The parameters: $1 source, $2 id.
    var parameters: Parameters {
        var parameters = Parameters()
        parameters.append(text: source)
        parameters.append(text: id)
        return parameters
    }
}
