import Engine
import LineProtocol
import NIOCore
import TestSupport
import Testing
import Usage

@testable import LineServer
@testable import ServiceCore

@Suite("A connection's subscriptions")
struct SubscriptionsTests {
    private static var dependencies: ConnectionStateMachine.Dependencies {
        ConnectionStateMachine.Dependencies(serverVersion: "1.2.3", info: { [] })
    }
    private static let eve = user(3)
    private static let away = EngineError(.unavailable, "away")

    /// A connection under test, with requests and replies as text.
    private struct Peer {
        var machine: ConnectionStateMachine
        var decoder = RequestDecoder()

        init(subscriptionsMaximum: Int = 100, version: Int = 2) {
            machine = .fixture(subscriptions: subscriptionsMaximum)
            if version == 3 {
                _ = send("HELLO 3")
                _ = receive()
            }
        }

        mutating func send(_ line: String) -> ConnectionStateMachine.RequestAction? {
            var buffer = ByteBuffer(string: line + "\n")
            return decoder.next(&buffer).map { machine.receive($0, SubscriptionsTests.dependencies) }
        }

        /// Subscribes and drops the confirmation.
        mutating func subscribe(to users: UserID...) {
            let channels = users.map { "usage:\($0)" }.joined(separator: " ")
            guard case .subscribe(_, let slot) = send("SUBSCRIBE \(channels)") else {
                Issue.record("SUBSCRIBE subscribes to nothing")
                return
            }
            machine.complete(slot: slot, .subscribed)
            _ = receive(withMessages: false)
        }

        mutating func receive(withMessages: Bool = true) -> String {
            String(buffer: machine.takeReplies(withMessages: withMessages) ?? ByteBuffer())
        }
    }

    private func confirmed(_ user: UserID, _ count: Int, _ kind: String = "subscribe", mark: String = "*") -> String {
        "\(mark)3\r\n$\(kind.utf8.count)\r\n\(kind)\r\n$42\r\nusage:\(user)\r\n:\(count)\r\n"
    }

    private func answer(_ user: UserID, used: Int) -> Answer { UsageSnapshot.paid(used: used).usage(of: user) }

    private func message(_ user: UserID, used: Int, version: Int = 2) -> String {
        var buffer = ByteBuffer()
        ChannelMessage.usage(channel: "usage:\(user)", answer(user, used: used)).encode(into: &buffer, version: version)
        return String(buffer: buffer)
    }

    @Test("are confirmed one by one, in the order of the request, once the engine has subscribed")
    func confirmation() {
        var peer = Peer()
        let action = peer.send("SUBSCRIBE usage:\(ben) usage:\(ada)")
        #expect(action == .subscribe([ben, ada], slot: 0))
        #expect(peer.receive() == "", "not confirmed yet")
        peer.machine.complete(slot: 0, .subscribed)
        #expect(peer.receive() == confirmed(ben, 1) + confirmed(ada, 2))
    }

    @Test("are confirmed in the order of the requests, between the other replies")
    func order() {
        var peer = Peer(version: 3)
        #expect(peer.send("SUBSCRIBE usage:\(ada)") == .subscribe([ada], slot: 1))
        #expect(peer.send("PING") == .replied)
        #expect(peer.send("SUBSCRIBE usage:\(ben)") == .subscribe([ben], slot: 3))
        peer.machine.complete(slot: 3, .subscribed)
        peer.machine.push(answer(ben, used: 5))
        #expect(peer.receive() == "", "the first is not confirmed, and nothing overtakes it")
        peer.machine.complete(slot: 1, .subscribed)
        #expect(
            peer.receive()
                == confirmed(ada, 1, mark: ">") + "+PONG\r\n" + confirmed(ben, 2, mark: ">")
                + message(ben, used: 5, version: 3)
        )
    }

    @Test("keep the peer's spelling of the channel")
    func spelling() {
        let user = UserID(high: 0xABCD, low: 1)
        let name = "usage:\(user)".replacing("abcd", with: "ABcd")
        var peer = Peer()
        _ = peer.send("SUBSCRIBE \(name)")
        peer.machine.complete(slot: 0, .subscribed)
        peer.machine.push(answer(user, used: 1))
        let text = peer.receive()
        #expect(text.contains("subscribe\r\n$42\r\n\(name)\r\n"))
        #expect(text.contains("message\r\n$42\r\n\(name)\r\n"))
    }

    @Test("count once when repeated")
    func duplicates() {
        var peer = Peer()
        _ = peer.send("SUBSCRIBE usage:\(ada) usage:\(ada)")
        peer.machine.complete(slot: 0, .subscribed)
        #expect(peer.receive() == confirmed(ada, 1) + confirmed(ada, 1))
        _ = peer.send("SUBSCRIBE usage:\(ada)")
        peer.machine.complete(slot: 1, .subscribed)
        #expect(peer.receive() == confirmed(ada, 1))
        peer.machine.push(answer(ada, used: 1))
        #expect(peer.receive() == message(ada, used: 1))
    }

    @Test("send a slow peer only the newest message about each user")
    func conflation() {
        var peer = Peer()
        peer.subscribe(to: ada, ben)
        for used in 1...1_000 {
            peer.machine.push(answer(ada, used: used))
            peer.machine.push(answer(ben, used: 2 * used))
        }
        #expect(peer.receive(withMessages: false) == "", "it reads nothing")
        #expect(peer.receive() == message(ada, used: 1_000) + message(ben, used: 2_000))
        #expect(peer.receive() == "")
    }

    @Test("send messages in portions, and all of them in the end")
    func portions() {
        var peer = Peer(subscriptionsMaximum: 1_000)
        let users = (0..<500).map { UserID(high: 9, low: UInt64($0)) }
        for user in users { peer.subscribe(to: user) }
        for user in users { peer.machine.push(answer(user, used: 3)) }
        var all = ""
        var portions = 0
        while true {
            let portion = peer.receive()
            guard !portion.isEmpty else { break }
            #expect(portion.utf8.count < 20_000)
            all += portion
            portions += 1
        }
        #expect(portions > 5)
        #expect(all == users.map { message($0, used: 3) }.joined())
    }

    @Test("end with UNSUBSCRIBE: some, an unknown one, all, and none")
    func unsubscribing() {
        var peer = Peer()
        peer.subscribe(to: ada, ben, Self.eve)
        peer.machine.push(answer(ada, used: 1))
        #expect(peer.send("UNSUBSCRIBE usage:\(ada)") == .unsubscribe([ada]))
        #expect(peer.receive() == confirmed(ada, 2, "unsubscribe"), "and no message after it")
        peer.machine.push(answer(ada, used: 2))
        #expect(peer.receive() == "")
        #expect(peer.send("UNSUBSCRIBE usage:\(ada)") == .unsubscribe([ada]))
        #expect(peer.receive() == confirmed(ada, 2, "unsubscribe"))
        guard case .unsubscribe(let users) = peer.send("UNSUBSCRIBE") else {
            Issue.record("UNSUBSCRIBE ends nothing")
            return
        }
        #expect(users.sorted() == [ben, Self.eve])
        #expect(peer.receive() == confirmed(ben, 1, "unsubscribe") + confirmed(Self.eve, 0, "unsubscribe"))
        #expect(peer.send("UNSUBSCRIBE") == .unsubscribe([]))
        #expect(peer.receive() == "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n")
        #expect(!peer.machine.isSubscribed)
    }

    @Test("are confirmed before their UNSUBSCRIBE is")
    func unsubscribingEarly() {
        var peer = Peer()
        _ = peer.send("SUBSCRIBE usage:\(ada)")
        #expect(peer.send("UNSUBSCRIBE usage:\(ada)") == .unsubscribe([ada]))
        #expect(peer.receive() == "")
        peer.machine.complete(slot: 0, .subscribed)
        #expect(peer.receive() == confirmed(ada, 1) + confirmed(ada, 0, "unsubscribe"))
    }

    @Test("that fail are an error, and change nothing")
    func failure() {
        var peer = Peer()
        peer.subscribe(to: ada)
        _ = peer.send("SUBSCRIBE usage:\(ben) usage:\(ada)")
        peer.machine.complete(slot: 1, .failure(Self.away))
        #expect(peer.receive() == "-UNAVAILABLE retry_ms=500 away\r\n")
        peer.machine.push(answer(ben, used: 1))
        peer.machine.push(answer(ada, used: 1))
        #expect(peer.receive() == message(ada, used: 1))
        _ = peer.send("UNSUBSCRIBE")
        #expect(peer.receive() == confirmed(ada, 0, "unsubscribe"))
    }

    @Test("that fail do not restrict the verbs")
    func failureAlone() {
        var peer = Peer()
        _ = peer.send("SUBSCRIBE usage:\(ben)")
        peer.machine.complete(slot: 0, .failure(Self.away))
        _ = peer.receive()
        #expect(!peer.machine.isSubscribed)
        #expect(peer.send("CONSUME \(ben)") == .submit(ben, .consume(1), slot: 1))
    }

    @Test("are limited in number; a request over the limit adds none")
    func limit() {
        var peer = Peer(subscriptionsMaximum: 2)
        peer.subscribe(to: ada)
        #expect(peer.send("SUBSCRIBE usage:\(ben) usage:\(Self.eve)") == .replied)
        let refused = peer.receive()
        #expect(refused.hasPrefix("-BADARG ") && refused.contains("subscriptions-maximum"))
        peer.machine.push(answer(ben, used: 1))
        #expect(peer.receive() == "", "neither of them")
        #expect(peer.send("SUBSCRIBE usage:\(ada) usage:\(ben)") == .subscribe([ada, ben], slot: 2))
    }

    @Test("restrict the verbs of a RESP2 connection")
    func restriction() {
        var peer = Peer()
        peer.subscribe(to: ada)
        for verb in ["CONSUME \(ada)", "USAGE \(ada)", "INFO", "HELP", "HELLO 3", "ECHO x", "REPORT"] {
            #expect(peer.send(verb) == .replied)
            #expect(peer.receive().hasPrefix("-ERR only SUBSCRIBE, UNSUBSCRIBE, PING and QUIT"), "\(verb)")
        }
        #expect(peer.send("PING") == .replied)
        #expect(peer.send("PING hey") == .replied)
        #expect(peer.receive() == "*2\r\n$4\r\npong\r\n$0\r\n\r\n*2\r\n$4\r\npong\r\n$3\r\nhey\r\n")
        _ = peer.send("UNSUBSCRIBE")
        _ = peer.receive()
        _ = peer.send("PING")
        #expect(peer.receive() == "+PONG\r\n")
        #expect(peer.send("CONSUME \(ada)") != .replied)
    }

    @Test("restrict only HELLO and AUTH on a RESP3 connection")
    func noRestriction() {
        var peer = Peer(version: 3)
        peer.subscribe(to: ada)
        #expect(peer.send("PING") == .replied)
        #expect(peer.receive() == "+PONG\r\n")
        #expect(peer.send("CONSUME \(ada)") == .submit(ada, .consume(1), slot: 3))
        peer.machine.push(answer(ada, used: 1))
        #expect(peer.receive() == message(ada, used: 1, version: 3), "a message may come before a reply")
        _ = peer.send("HELLO 2")
        peer.machine.complete(slot: 3, .failure(Self.away))
        #expect(peer.receive().hasSuffix("-ERR UNSUBSCRIBE before another HELLO or AUTH\r\n"))
    }

    @Test("are confirmed in the RESP version of their request, before the reply to HELLO")
    func otherProtocolLater() {
        var peer = Peer()
        _ = peer.send("SUBSCRIBE usage:\(ada)")
        #expect(peer.send("UNSUBSCRIBE") == .unsubscribe([ada]))
        #expect(peer.send("HELLO 3") == .replied)
        #expect(peer.send("SUBSCRIBE usage:\(ben)") == .subscribe([ben], slot: 3))
        #expect(peer.send("USAGE \(ben)") == .submit(ben, .usage, slot: 4), "it will be RESP3")
        peer.machine.complete(slot: 0, .subscribed)
        peer.machine.complete(slot: 3, .subscribed)
        let replies = peer.receive()
        #expect(replies.hasPrefix(confirmed(ada, 1) + confirmed(ada, 0, "unsubscribe") + "%7\r\n"))
        #expect(replies.hasSuffix(confirmed(ben, 1, mark: ">")))
    }

    @Test("repeat no earlier message when made again")
    func oldNews() {
        var peer = Peer()
        peer.subscribe(to: ada)
        peer.machine.push(answer(ada, used: 1))
        #expect(peer.receive(withMessages: false) == "", "it reads nothing")
        _ = peer.send("UNSUBSCRIBE usage:\(ada)")
        peer.machine.push(answer(ada, used: 2))
        peer.subscribe(to: ada)
        #expect(peer.receive() == "")
        peer.machine.push(answer(ada, used: 3))
        #expect(peer.receive() == message(ada, used: 3))
    }

    @Test("end with QUIT")
    func quit() {
        var peer = Peer()
        peer.subscribe(to: ada)
        _ = peer.send("QUIT")
        peer.machine.push(answer(ada, used: 1))
        #expect(peer.receive() == "+OK\r\n")
        #expect(peer.machine.isFinished)
    }

    @Test("do not keep a connection open whose peer has closed its side")
    func halfClose() {
        var peer = Peer()
        _ = peer.send("SUBSCRIBE usage:\(ada)")
        peer.machine.inputEnded()
        #expect(!peer.machine.isFinished)
        peer.machine.complete(slot: 0, .subscribed)
        #expect(peer.receive() == confirmed(ada, 1))
        #expect(peer.machine.isFinished)
    }

    @Test("end when the connection drains")
    func draining() {
        var peer = Peer()
        peer.subscribe(to: ada)
        peer.machine.drain()
        #expect(peer.machine.isIdle)
        #expect(peer.send("PING") == .replied)
        #expect(peer.receive().hasPrefix("-DRAINING "))
        #expect(peer.machine.isFinished)
    }
}
