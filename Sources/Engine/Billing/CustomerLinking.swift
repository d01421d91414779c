import Billing
import JSON
import Postgres
import Usage

/// The result of linking a transaction, or a customer of a store, with a user.
public enum CustomerLinkResult: Sendable, Equatable {
    /// JSON: `outcome` is `applied`, or `duplicate` if the user was the owner already. `events` has the number of
    /// events that the link changed, by outcome. The other members are those of the answer to an event.
    case done(JSONValue)
    /// No event names the transaction or the customer.
    case notFound(String)
    case invalid(String)
    /// The link would contradict the store's own events.
    case refused(String)

    /// - Parameter error: an error of `headroom.link_customer`.
    fileprivate init?(_ error: PostgresError) {
        let text = [error.message, error.hint].compactMap(\.self).joined(separator: ". ")
        switch error.sqlState {
        case .noDataFound?: self = .notFound(text)
        case .invalidParameterValue?: self = .invalid(text)
        default: return nil
        }
    }
}

/// Records and applies links. Both happen in one transaction, so that a refused link leaves nothing.
extension BillingLedger {
    /// Gives a transaction, or a customer of a store, to a user, and applies the events that waited for one.
    ///
    /// - Parameter name: an original transaction, or else the store's id of a customer.
    package func link(
        _ source: String,
        _ name: String,
        to user: UserID
    ) throws(PostgresError) -> CustomerLinkResult {
        try retrying { () throws(PostgresError) in
            try begin()
            var parameters = Parameters()
            parameters.append(text: source)
            parameters.append(text: name)
            parameters.append(text: user.description)
            let id: String
            do throws(PostgresError) {
                id = try connection.query(EmbeddedSQL.linkCustomer, parameters, deadline: deadline).firstRow.text("id")
            } catch {
                guard let refusal = CustomerLinkResult(error) else { throw error }
                return try undo(refusal)
            }
            let event = BillingEventLog.Name(source: source, id: id)
            let stored = try connection.query(EmbeddedSQL.readEventPayload, event.parameters, deadline: deadline)
            let payload = try? JSONValue(parsing: Array(try stored.firstRow.text("payload").utf8))
            guard let link = payload.flatMap({ CustomerLink(source: source, payload: $0) }) else {
                throw PostgresError(.misuse, "headroom.link_customer recorded no link")
            }
            return try finish(link, isNew: true)
        }
    }

    /// Applies a link that was recorded in psql.
    func apply(_ link: CustomerLink) throws(PostgresError) -> CustomerLinkResult {
        try retrying { () throws(PostgresError) in
            try begin()
            return try finish(link, isNew: false)
        }
    }

    /// - Parameter isNew: whether this transaction recorded the link. It is dropped if the user is the owner already.
    private func finish(_ recorded: CustomerLink, isNew: Bool) throws(PostgresError) -> CustomerLinkResult {
        let customer = try lockAndRead(recorded.event, isReplay: true, isFirst: false)
        guard customer.answer == nil, let user = UserID(recorded.user) else {
            return try undo(.refused("its user was forgotten"))
        }
        let events = customer.recordedEvents
        let finding = recorded.finding(in: events)
        if let refusal = finding.refusal(of: user) { return try undo(.refused(refusal)) }
        if isNew, finding.presentOwner == user {
            return try undo(.answer(["outcome": .string("duplicate"), "user": .string("\(user)")], events: []))
        }
        var link = recorded
        link.digests = finding.digests
        let change = try change(by: link.event, customer)
        if let problem = change.event.problem { return try undo(.refused(problem)) }
        let links = Set(events.lazy.filter(\.isLink).map(\.key))
        let changed = (change.results ?? []).filter { result in
            !links.contains(RecordedEvent.Key(source: result.source, id: result.id))
        }
        let answer = try write(change)
        guard case .object(let members)? = try? JSONValue(parsing: Array(answer.utf8)) else {
            throw PostgresError(.misuse, "headroom.write_customer returned no answer")
        }
        return .answer(members, events: changed.map(\.outcome))
    }

    private func undo(_ result: CustomerLinkResult) throws(PostgresError) -> CustomerLinkResult {
        try connection.execute("rollback", deadline: deadline)
        return result
    }
}

extension CustomerLinkResult {
    /// - Parameter outcomes: the outcomes of the events that the link changed.
    fileprivate static func answer(_ members: [String: JSONValue], events outcomes: [String]) -> CustomerLinkResult {
        let counts = Dictionary(grouping: outcomes) { $0 }.mapValues { JSONValue.integer(Int64($0.count)) }
        return .done(.object(members.merging(["events": .object(counts)]) { $1 }))
    }
}
