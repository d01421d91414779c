import JSON
import TestSupport
import Testing
import Usage

@testable import Billing

@Suite("A link of a transaction or a customer with a user")
struct CustomerLinkTests {
    private let anonymousId = "sha256:aa"
    private let otherId = "sha256:bb"

    private func purchase(_ date: String = "2026-02-01", by identities: [String] = []) -> RecordedEvent {
        event(date, by: identities, effect(.purchased, plan: "paid", until: "2026-12-01"))
    }

    private func linked(
        _ date: String = "2026-03-01",
        _ transaction: String? = "T",
        by identities: [String] = ["\(ada)"]
    ) -> RecordedEvent {
        event(date, by: identities, BillingEffect(.linked, transaction: transaction))
    }

    private func link(_ subject: CustomerLink.Subject, with user: UserID = ada) throws -> CustomerLink {
        let (name, value) =
            switch subject {
            case .transaction(let transaction): ("transaction", transaction)
            case .customer(let digest): ("customer", digest)
            }
        let members: [String: JSONValue] = [
            "id": .string("link:1"), "at": .string("2026-03-01T00:00:00Z"), "user": .string("\(user)"),
            name: .string(value),
        ]
        return try #require(CustomerLink(source: "appstore", payload: .object(["link": .object(members)])))
    }

    @Test("gives the user a purchase of messages")
    func messages() {
        let pack = event("2026-02-01", by: [], effect(.granted, "G", messages: 50))
        #expect(ReducedCustomer(pack, linked("2026-03-01", "G")).state.purchases.map(\.user) == [ada])
    }

    @Test("connects what the store's events name beside the transaction, but for the names of users")
    func digests() throws {
        let link = try link(.transaction("T"))
        let known = event("2026-01-01", by: ["\(ben)", otherId])
        #expect(
            link.finding(in: [known, purchase(by: [otherId]), purchase("2026-02-02", by: [anonymousId, otherId])])
                == CustomerLink.Finding(owner: .user(ben), presentOwner: ben, digests: [anonymousId])
        )
        #expect(
            link.finding(in: [purchase("2026-02-02", by: [anonymousId, otherId]), purchase(by: [otherId])])
                == CustomerLink.Finding(owner: .nobody, presentOwner: nil, digests: [otherId, anonymousId])
        )
        #expect(link.finding(in: [purchase()]) == CustomerLink.Finding(owner: .nobody, presentOwner: nil, digests: []))
        let customer = try self.link(.customer(anonymousId))
        #expect(
            customer.finding(in: [purchase(by: [anonymousId])])
                == CustomerLink.Finding(owner: .nobody, presentOwner: nil, digests: [anonymousId])
        )
    }

    @Test("is refused only where the store itself names another user, or one who was forgotten")
    func refusal() throws {
        let link = try link(.transaction("T"))
        let claimed = link.finding(in: [purchase(by: ["\(ben)"])])
        #expect(claimed.refusal(of: ada)?.contains("belongs to the user \(ben)") == true)
        #expect(claimed.refusal(of: ben) == nil)
        let gone = "forgotten:" + String(repeating: "0", count: 64)
        #expect(link.finding(in: [purchase(by: [gone])]).refusal(of: ada)?.contains("forgotten") == true)
        let byLink = link.finding(in: [purchase(), linked("2026-02-20", by: ["\(ben)"])])
        #expect(byLink.owner == .nobody && byLink.presentOwner == ben)
        #expect(byLink.refusal(of: ada) == nil, "a link can be corrected")
        let pack = event("2026-02-01", by: ["\(ben)"], effect(.granted, "G", messages: 50))
        #expect(try self.link(.transaction("G")).finding(in: [pack]).owner == .user(ben), "a purchase has a buyer")
        var other = purchase(by: ["\(ben)"])
        other.key.source = "revenuecat"
        #expect(link.finding(in: [other]).owner == .nobody, "another source")
    }

    @Test("is stored in its event's payload")
    func payload() throws {
        var link = try link(.transaction("T"))
        #expect(link.digests == nil)
        link.digests = [anonymousId]
        let event = link.event
        #expect(event.identities == ["\(ada)", anonymousId] && event.users == [ada])
        #expect(event.customerNames == ["appstore:\(anonymousId)", "appstore:transaction:T", "user:\(ada)"])
        #expect(CustomerLink(source: "appstore", payload: event.payload) == link)
        let customer = try self.link(.customer(anonymousId))
        #expect(customer.event.identities == ["\(ada)", anonymousId])
        #expect(CustomerLink(source: "appstore", payload: customer.event.payload) == customer)
        for payload in ["{}", #"{"link":{"id":"a","user":"b"}}"#, #"{"link":{"id":"a","at":"2026-03-01","user":"b"}}"#]
        {
            #expect(CustomerLink(source: "appstore", payload: try JSONValue(parsing: Array(payload.utf8))) == nil)
        }
    }
}
