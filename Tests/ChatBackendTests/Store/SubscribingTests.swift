import AsyncHTTPClient
import Foundation
import HeadroomClient
import NIOCore
import NIOPosix
import Postgres
import TestSupport
import Testing

@testable import chat_backend

@Suite("Subscribing tells Headroom's webhook, as a store would", .timeLimit(.minutes(10)))
struct SubscribingTests {
    private static let secret = "Bearer of-the-test"

    /// A service with its webhook, to which both products are mapped.
    private func withChat(
        webhookSecret: String = secret,
        mapped: Bool = true,
        patience: ChatConfiguration.Patience = RunningChat.patient,
        _ body: (ServiceProcess, RunningChat) async throws -> Void
    ) async throws {
        let service = try await ServiceProcess.start(
            http: true,
            environment: ["HEADROOM_REVENUECAT_AUTHORIZATION": Self.secret]
        )
        if mapped {
            try await onThread {
                let connection = try Connection.connect(service.conninfo)
                defer { connection.close() }
                for product in StoreEvent.Product.allCases {
                    try connection.execute(
                        """
                        select headroom.map_product('revenuecat', '\(product.rawValue)', '\(product.plan)',
                            p_trial_plan => 'trial')
                        """,
                        deadline: .now + waitLimit
                    )
                }
            }
        }
        let port = try #require(service.httpPort)
        try await RunningChat.with(
            service,
            "--webhook",
            "http://127.0.0.1:\(port)/webhooks/revenuecat",
            environment: ["CHAT_WEBHOOK_AUTHORIZATION": webhookSecret],
            patience: patience
        ) { chat in
            try await body(service, chat)
        }
    }

    private func change(
        _ chat: RunningChat,
        _ user: UserID,
        _ action: String,
        plan: String? = nil
    ) async throws -> HTTPClientResponse {
        let plan = plan.map { #", "plan": "\#($0)""# } ?? ""
        return try await chat.request("POST", "/users/\(user)/subscription", #"{"action": "\#(action)"\#(plan)}"#)
    }

    @Test("Who has nothing left subscribes, and the next message is sent; the open page hears it")
    func gate() async throws {
        try await withChat { service, chat in
            let user = try await service.user("free")
            var page = EventReader(try await chat.request("GET", "/users/\(user)/changes"))
            #expect(try await page.next("usage")?.text("display") == "blocked")
            #expect(try await chat.page(user)["can_subscribe"] as? Bool == true)
            #expect(try await chat.send(user).map(\.name) == ["blocked"])
            #expect(try await change(chat, user, "subscribe", plan: "paid").status == .noContent)
            #expect(try await page.next("usage") { $0.text("plan") == "paid" }?.text("display") == "hidden")
            var events = try await chat.events(user)
            let question = try await chat.question()
            question.say("Welcome back")
            question.end()
            #expect(try await events.next("sent")?.int("usage", "used") == 1)
        }
    }

    @Test("Cancelling, resuming, paying and upgrading are about the same subscription")
    func life() async throws {
        try await withChat { service, chat in
            let user = UserID.random
            #expect(try await change(chat, user, "subscribe", plan: "paid").status == .noContent)
            _ = try await service.ask { try await $0.consume(user, messages: 800) }
            for (action, state) in [("cancel", SubscriptionState.cancelled), ("resume", .active), ("pay", .active)] {
                #expect(try await change(chat, user, action).status == .noContent)
                let status = try await service.usage(of: user)
                #expect(status.state == state && status.used == 800, "\(action)")
            }
            #expect(try await change(chat, user, "subscribe", plan: "pro").status == .noContent)
            let status = try await service.usage(of: user)
            #expect(status.plan == "pro" && status.limit == nil && status.display == .hidden)
            // With the next renewal, and not before.
            #expect(try await change(chat, user, "downgrade", plan: "paid").status == .noContent)
            #expect(try await service.usage(of: user).plan == "pro")
            #expect(try await change(chat, user, "restore").status == .noContent)
        }
    }

    @Test("A webhook that breaks off may have taken the event, and one that is not there has not")
    func brokenOff() async throws {
        let service = try await ServiceProcess.start()
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.pipeline.addHandler(HangingUp())
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        try await RunningChat.with(
            service,
            "--webhook",
            "http://127.0.0.1:\(port)/webhooks/revenuecat",
            environment: ["CHAT_WEBHOOK_AUTHORIZATION": Self.secret]
        ) { chat in
            let broken = try await change(chat, .random, "subscribe", plan: "paid")
            #expect(broken.status == .gatewayTimeout)
            #expect(try await broken.problem().code == "UNKNOWN")
            try await server.close()
            let away = try await change(chat, .random, "subscribe", plan: "paid")
            #expect(away.status == .badGateway)
            #expect(try await away.problem().code == "WEBHOOK")
        }
    }

    /// Closes the connection as soon as anything comes.
    private final class HangingUp: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.close(promise: nil)
        }
    }

    @Test("A subscription that has lapsed is renewed, also after the chat was started again")
    func renewal() throws {
        let user = UserID.random
        var status = UsageStatus(
            user: user,
            plan: "free",
            state: .expired,
            tier: .blocked,
            display: .blocked,
            used: 0,
            limit: 0,
            remaining: 0,
            period: BillingPeriod(year: 2026, month: 11)
        )
        status.previousPlan = "paid"
        func kind(_ change: SubscriptionChange, _ status: UsageStatus?) throws -> String? {
            Event(name: "", body: JSONAnswer.data(try change.event(for: user, status))).text("event", "type")
        }
        let again = SubscriptionChange(action: .subscribe, plan: "paid")
        #expect(try kind(again, status) == "RENEWAL")
        #expect(try kind(again, nil) == "INITIAL_PURCHASE")
        #expect(try kind(SubscriptionChange(action: .subscribe, plan: "pro"), status) == "INITIAL_PURCHASE")
        #expect(try kind(SubscriptionChange(action: .pay, plan: nil), status) == "RENEWAL")
        #expect(try kind(SubscriptionChange(action: .cancel, plan: nil), status) == "CANCELLATION")
    }

    @Test("What cannot be changed is said, and no event is told")
    func refused() async throws {
        try await withChat { service, chat in
            let user = try await service.user("free")
            for (action, plan, status) in [
                ("cancel", nil, 409), ("pay", nil, 409), ("subscribe", nil, 400), ("subscribe", "gold", 400),
                ("steal", "paid", 400), ("downgrade", "paid", 409), ("downgrade", nil, 400), ("restore", nil, 404),
            ] as [(String, String?, UInt)] {
                let response = try await change(chat, user, action, plan: plan)
                #expect(response.status.code == status, "\(action) \(plan ?? "")")
                #expect(try await response.problem().message.count > 10)
            }
            #expect(try await service.usage(of: user).plan == "free")
        }
    }

    @Test("A webhook that refuses, cannot apply, or is away is told as such")
    func webhookTrouble() async throws {
        try await withChat(webhookSecret: "Bearer of-somebody-else") { service, chat in
            let response = try await change(chat, .random, "subscribe", plan: "paid")
            #expect(response.status == .badGateway)
            #expect(try await response.problem().message.contains("401"))
        }
        try await withChat(mapped: false, patience: .init()) { service, chat in
            let response = try await change(chat, .random, "subscribe", plan: "paid")
            #expect(response.status == .badGateway)
            #expect(try await response.problem().message.contains("headroom product map"))
            try await service.crash()
            let away = try await change(chat, .random, "subscribe", plan: "paid")
            #expect(away.status == .badGateway)
            #expect(try await away.problem().message.contains("cannot be reached"))
        }
        let service = try await ServiceProcess.start()
        try await RunningChat.with(service) { chat in
            let response = try await change(chat, .random, "subscribe", plan: "paid")
            #expect(response.status == .badGateway)
            #expect(try await response.problem().message.contains("--webhook"))
        }
    }
}
