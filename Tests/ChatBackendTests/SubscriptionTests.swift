import AsyncHTTPClient
import Foundation
import HeadroomClient
import NIOCore
import NIOPosix
import Postgres
import TestSupport
import Testing

@testable import chat_backend

@Suite("Subscribing posts events to Headroom's webhook", .timeLimit(.minutes(10)))
struct SubscriptionTests {
    private static let secret = "Bearer of-the-test"

    /// A service with its webhook, to which both products are mapped.
    private func withChat(
        webhookSecret: String = secret,
        isMapped: Bool = true,
        deadline: Duration = waitLimit,
        _ body: (ServiceProcess, RunningChat) async throws -> Void
    ) async throws {
        let service = try await ServiceProcess.start(
            http: true,
            environment: ["HEADROOM_REVENUECAT_AUTHORIZATION": Self.secret]
        )
        if isMapped {
            try await onThread {
                let connection = try DatabaseConnection.connect(service.conninfo)
                defer { connection.close() }
                for product in Product.allCases {
                    let call = "headroom.map_product('revenuecat', '\(product.rawValue)', '\(product.plan)')"
                    try connection.execute("select \(call)", deadline: .now + waitLimit)
                }
            }
        }
        let port = try #require(service.httpPort)
        let webhook = "http://127.0.0.1:\(port)/webhooks/revenuecat"
        let environment = ["CHAT_WEBHOOK_AUTHORIZATION": webhookSecret]
        try await RunningChat.with(service, "--webhook", webhook, environment: environment, deadline: deadline) {
            chat in
            try await body(service, chat)
        }
    }

    @Test("A blocked user subscribes, and the next message is sent")
    func subscribing() async throws {
        try await withChat { service, chat in
            let user = try await service.user("free")
            var page = try await chat.changes(user)
            #expect(try await page.next("usage")?.text("display") == "blocked")
            #expect(try await chat.send(user).rest().map(\.name) == ["blocked"])
            #expect(try await chat.change(user, "subscribe", plan: "paid").status == .noContent)
            #expect(try await page.next("usage") { $0.text("plan") == "paid" }?.text("display") == "hidden")
            var events = try await chat.send(user)
            try await chat.answer(0, "Welcome back")
            #expect(try await events.next("sent")?.int("usage", "used") == 1)
        }
    }

    @Test("Cancelling, resuming, paying, upgrading and downgrading change the same subscription")
    func changing() async throws {
        try await withChat { service, chat in
            let user = UserID.random
            #expect(try await chat.change(user, "subscribe", plan: "paid").status == .noContent)
            _ = try await service.request { try await $0.consume(user, messages: 800) }
            // A payment brings new messages.
            for (action, state, used) in [
                ("cancel", SubscriptionState.cancelled, 800), ("resume", .active, 800), ("pay", .active, 0),
            ] {
                #expect(try await chat.change(user, action).status == .noContent)
                let status = try await service.usage(of: user)
                #expect(status.state == state && status.used == used, "\(action)")
            }
            #expect(try await chat.change(user, "subscribe", plan: "pro").status == .noContent)
            #expect(try await service.usage(of: user).plan == "pro")
            #expect(try await chat.change(user, "downgrade", plan: "paid").status == .noContent)
            let status = try await service.usage(of: user)
            #expect(status.plan == "pro" && status.nextPlan == "paid")
            #expect(try await chat.change(user, "restore").status == .noContent)
        }
    }

    @Test("A change without a subscription, or to an unknown plan, is refused and posts nothing")
    func refused() async throws {
        try await withChat { service, chat in
            let user = try await service.user("free")
            for (action, plan, status) in [
                ("cancel", nil, 409), ("pay", nil, 409), ("subscribe", nil, 400), ("subscribe", "gold", 400),
                ("steal", "paid", 400), ("downgrade", "paid", 409), ("downgrade", nil, 400), ("restore", nil, 404),
            ] as [(String, String?, UInt)] {
                let response = try await chat.change(user, action, plan: plan)
                #expect(response.status.code == status, "\(action) \(plan ?? "")")
            }
            #expect(try await service.usage(of: user).plan == "free")
        }
    }

    @Test("An expired subscription to the same plan is renewed")
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
        let again = SubscriptionChange(action: .subscribe, plan: "paid")
        let renewal = try #require(try again.event(for: user, status))
        #expect(renewal.event.type == .renewal)
        let purchase = try #require(try again.event(for: user, nil))
        #expect(purchase.event.type == .initialPurchase)
        let other = SubscriptionChange(action: .subscribe, plan: "pro")
        let upgrade = try #require(try other.event(for: user, status))
        #expect(upgrade.event.type == .initialPurchase)
    }

    @Test("A webhook that refuses or cannot apply an event, or is unreachable, has changed nothing")
    func failed() async throws {
        try await withChat(webhookSecret: "Bearer of-somebody-else") { _, chat in
            let response = try await chat.change(.random, "subscribe", plan: "paid")
            #expect(response.status == .badGateway)
        }
        // The usage is read for as long as this, before the webhook is tried without it.
        try await withChat(isMapped: false, deadline: .seconds(1)) { service, chat in
            let response = try await chat.change(.random, "subscribe", plan: "paid")
            #expect(response.status == .badGateway)
            try await service.crash()
            #expect(try await chat.change(.random, "subscribe", plan: "paid").status == .badGateway)
        }
        let service = try await ServiceProcess.start()
        try await RunningChat.with(service) { chat in
            let response = try await chat.change(.random, "subscribe", plan: "paid")
            #expect(response.status == .badGateway)
        }
    }

    @Test("A webhook that closes the connection may have applied the event")
    func unknown() async throws {
        let service = try await ServiceProcess.start()
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in channel.pipeline.addHandler(ClosingHandler()) }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let webhook = "http://127.0.0.1:\(port)/"
        let environment = ["CHAT_WEBHOOK_AUTHORIZATION": Self.secret]
        try await RunningChat.with(service, "--webhook", webhook, environment: environment) { chat in
            let response = try await chat.change(.random, "subscribe", plan: "paid")
            #expect(response.status == .gatewayTimeout)
        }
        try await server.close()
    }

    /// Closes the connection with the first bytes.
    private final class ClosingHandler: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.close(promise: nil) }
    }
}
