import Engine
import LineProtocol
import NIOCore
import Usage

@testable import LineServer
@testable import ServiceCore

/// Requests, outcomes, changes of users and ends come in any order. Each request gets one reply, in the order of the
/// requests, as `ExpectedReplies` computes it. Each published message has the newest snapshot of a user to whom the
/// connection is subscribed.
///
/// The input: the events.
enum ConnectionTarget {
    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = FuzzInput(input)
        var run = ConnectionRun(&decisions)
        while !decisions.isAtEnd { try run.event(&decisions) }
        try run.end()
    }
}

private struct ConnectionRun {
    private var machine: ConnectionStateMachine
    private var expected: ExpectedReplies
    private let slotsMaximum: Int
    /// The slots of requests in flight, with the numbers of the requests.
    private var waiting: [(slot: UInt64, request: Int)] = []
    private var slotsUsed: Set<UInt64> = []
    private var answersMade = 0
    /// The newest unsent snapshot of each user.
    private var changes: [UserID: Answer] = [:]
    private let dependencies = ConnectionStateMachine.Dependencies(serverVersion: "1.2.3", info: { ["a=b"] })

    init(_ decisions: inout FuzzInput) {
        slotsMaximum = 1 + decisions.below(8)
        let allows = decisions.flag()
        machine = ConnectionStateMachine(
            connectionID: 7,
            slotsMaximum: slotsMaximum,
            allowsWhenUnavailable: allows,
            subscriptionsMaximum: 3,
            words: CurrentWords()
        )
        expected = ExpectedReplies(connectionID: 7, allowsWhenUnavailable: allows, subscriptionsMaximum: 3)
    }

    mutating func event(_ decisions: inout FuzzInput) throws(Violation) {
        switch decisions.below(16) {
        case 0...6: try receive(decisions.request())
        case 7...10:
            // As the event loop does: the outcomes of a batch, then the replies that they make ready.
            for _ in 0...decisions.below(3) { complete(&decisions) }
            try takeReplies(withMessages: decisions.flag())
        case 11: try takeReplies(withMessages: true)
        case 12: try takeReplies(withMessages: decisions.flag())
        case 13: push(decisions.user())
        case 14:
            // Rare, because few events are possible after it.
            guard decisions.below(8) == 0 else { return }
            switch decisions.below(3) {
            case 0: inputEnds()
            case 1: drain(because: .draining)
            default: drain(because: .tokenEnded)
            }
        default:
            guard decisions.below(32) == 0 else { return }
            machine.close()
            expected.close()
            waiting = []
        }
    }

    private mutating func receive(_ request: DecodedRequest) throws(Violation) {
        try require(expected.acceptsRequests || !machine.acceptsRequests, "it accepts requests")
        guard machine.acceptsRequests else {
            try require(
                !expected.acceptsRequests || !expected.isEmpty,
                "it accepts no requests, and no request is in flight"
            )
            return
        }
        let number = expected.receive(request)
        switch machine.receive(request, dependencies) {
        case .authenticate(let credentials, let hello):
            try require(!expected.waits(number), "\(request) was authenticated")
            let isGood = credentials.token.text == FuzzInput.goodToken
            let identity = Identity(tokenID: 1, name: "a", permissions: .all)
            let result = isGood ? Result<Identity, ReplyError>.success(identity) : .failure(.wrongToken)
            machine.completeAuthentication(result, hello: hello, dependencies)
        case .replied, .unsubscribe: try require(!expected.waits(number), "\(request) was answered without the engine")
        case .submit(_, _, let slot), .read(_, let slot), .subscribe(_, let slot):
            try require(expected.waits(number), "\(request) was submitted to the engine")
            try require(slotsUsed.insert(slot).inserted, "the slot \(slot) is used twice")
            waiting.append((slot, number))
        }
        try require(
            waiting.count <= slotsMaximum,
            "\(waiting.count) requests are in flight; the maximum is \(slotsMaximum)"
        )
    }

    private mutating func complete(_ decisions: inout FuzzInput) {
        guard !waiting.isEmpty else { return }
        let (slot, request) = waiting.remove(at: decisions.below(waiting.count))
        let outcome = decisions.outcome(isSubscription: expected.isSubscription(request)) {
            answersMade += 1
            return answersMade
        }
        expected.complete(request, outcome)
        machine.complete(slot: slot, outcome)
    }

    private mutating func push(_ user: UserID) {
        answersMade += 1
        let answer = Answer(user: user, status: .ok, snapshot: .counting(answersMade))
        changes[user] = answer
        machine.push(answer)
    }

    private mutating func drain(because reason: ReplyError) {
        machine.drain(because: reason)
        expected.drain(because: reason)
    }

    private mutating func inputEnds() {
        machine.inputEnded()
        expected.inputEnds()
    }

    /// The output must be the replies that are ready, followed by messages.
    private mutating func takeReplies(withMessages: Bool) throws(Violation) {
        let output = Array((machine.takeReplies(withMessages: withMessages) ?? ByteBuffer()).readableBytesView)
        let replies = Array(expected.takeReady().readableBytesView)
        try require(
            output.starts(with: replies),
            "\(String(decoding: output, as: UTF8.self)) instead of \(String(decoding: replies, as: UTF8.self))"
        )
        var reader = RESPReader(Array(output.dropFirst(replies.count)))
        let messages = try reader.all()
        try require(
            withMessages && expected.mayReceiveMessages || messages.isEmpty,
            "messages to a peer that must not receive any: \(messages)"
        )
        for message in messages { try checkMessage(message) }
    }

    private mutating func checkMessage(_ message: RESPReader.Value) throws(Violation) {
        for (user, channel) in expected.channels {
            guard let answer = changes[user] else { continue }
            var buffer = ByteBuffer()
            ChannelMessage.usage(channel: channel, answer).encode(into: &buffer, version: expected.version)
            var reader = RESPReader(Array(buffer.readableBytesView))
            if try reader.next() == message {
                changes[user] = nil
                return
            }
        }
        throw Violation(description: "unexpected message \(message); subscribed: \(expected.channels)")
    }

    /// Completes all requests. A connection that accepts no more is finished then.
    mutating func end() throws(Violation) {
        // From the last to the first: the hardest order.
        while let (slot, request) = waiting.popLast() {
            expected.complete(request, .done)
            machine.complete(slot: slot, .done)
        }
        try takeReplies(withMessages: true)
        try require(expected.isEmpty, "requests without a reply")
        try require(machine.isIdle, "it is not idle, but all requests are answered")
        try requireEqual(machine.isFinished, expected.isFinished, "it is finished")
        try requireEqual(machine.acceptsRequests, expected.acceptsRequests, "it accepts requests")
        try checkThatSubscribersGetMessages()
    }

    /// Each subscription gets a message about a change.
    private mutating func checkThatSubscribersGetMessages() throws(Violation) {
        guard expected.mayReceiveMessages else { return }
        for user in expected.channels.keys { push(user) }
        try takeReplies(withMessages: true)
        for user in expected.channels.keys { try require(changes[user] == nil, "no message about \(user)") }
    }
}
