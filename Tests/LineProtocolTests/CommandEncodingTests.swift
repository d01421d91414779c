import NIOCore
import TestSupport
import Testing
import Usage

@testable import LineProtocol

@Suite("Encoded requests")
struct CommandEncodingTests {
    private static func encoded(_ command: Command) -> [UInt8] {
        var buffer = ByteBuffer()
        command.encode(into: &buffer)
        return Array(buffer.readableBytesView)
    }

    private static func text(_ letters: String, _ count: ClosedRange<Int>, _ generator: inout SeededGenerator) -> String
    {
        let letters = Array(letters)
        let length = Int.random(in: count, using: &generator)
        return String((0..<length).map { _ in letters.randomElement(using: &generator) ?? "a" })
    }

    private static func command(_ generator: inout SeededGenerator) throws -> Command {
        let user = UserID(high: generator.next(), low: generator.next())
        let key = try MessageKey(text("ab =\"\\é🙂-_*$", 1...20, &generator))
        let messages = Int.random(in: 1...1_000_000, using: &generator)
        let period = [nil, BillingPeriod("2026-11"), BillingPeriod("trial")].randomElement(using: &generator) ?? nil
        let instants = [nil, Instant("2026-11-24T09:30:00Z")]
        let change = PlanChange(
            user: user,
            plan: "paid",
            state: [nil, SubscriptionState.cancelled].randomElement(using: &generator) ?? nil,
            startedAt: instants.randomElement(using: &generator) ?? nil,
            expiresAt: instants.randomElement(using: &generator) ?? nil,
            graceUntil: instants.randomElement(using: &generator) ?? nil,
            anchorDay: [nil, 31].randomElement(using: &generator) ?? nil
        )
        let commands: [Command] = [
            .consume(user: user, messages: messages, key: key), .consume(user: user, messages: 1),
            .reserve(user: user, messages: messages, key: key, ttlSeconds: 86_400), .commit(user: user, key: key),
            .release(user: user, key: key), .check(user: user, messages: messages),
            .usage(user: user, period: period), .history(user: user, months: 12), .report(period: period),
            .top(period: period, count: 1_000), .subscribe([UsageChannel(user)]), .unsubscribe(nil),
            .unsubscribe([UsageChannel(user)]), .setPlan(change),
            .grant(user: user, messages: messages, key: key, reason: text("ab é", 1...9, &generator)),
            .resetUsage(user: user, period: period), .forget(user: user), .ping(text: nil), .ping(text: "a b"),
            .echo(text: ""), .help(verb: .top), .info, .quit, .client, .command, .select,
            .authenticate(Credentials(name: nil, token: Secret("headroom_o2"))),
            .authenticate(Credentials(name: "backend", token: Secret("a b"))),
            .hello(version: 3, credentials: Credentials(name: "backend", token: Secret("t"))),
        ]
        return try #require(commands.randomElement(using: &generator))
    }

    @Test("decode to the same requests, alone and in a pipeline", arguments: SeededGenerator.seeds)
    func roundTrip(seed: UInt64) throws {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let commands = try (0..<1_000).map { _ in try CommandEncodingTests.command(&generator) }
        for command in commands {
            #expect(decode(CommandEncodingTests.encoded(command)) == [.command(command)], "seed \(seed)")
        }
        #expect(decode(commands.flatMap(CommandEncodingTests.encoded)) == commands.map { .command($0) })
    }

    @Test("with a line end in the key stay one request, which is refused")
    func noSecondRequest() throws {
        let key = try MessageKey("a\r\nFORGET \(userText)\r\n")
        for command in [Command.consume(user: user, messages: 1, key: key), .commit(user: user, key: key)] {
            #expect(decode(CommandEncodingTests.encoded(command)).map(\.code) == [.badArg])
        }
    }

    @Test("are lines for the verbs of each message")
    func plainLine() throws {
        let key: MessageKey = "k"
        let request = CommandEncodingTests.encoded(.consume(user: user, messages: 1, key: key))
        #expect(String(decoding: request, as: UTF8.self) == "CONSUME \(userText) key=k\r\n")
        let hold = CommandEncodingTests.encoded(.reserve(user: user, messages: 2, key: key, ttlSeconds: 9))
        #expect(String(decoding: hold, as: UTF8.self) == "RESERVE \(userText) 2 key=k ttl=9\r\n")
    }
}
