import Engine
import LineProtocol
import NIOCore
import Usage

@testable import HeadroomServer

/// However requests, outcomes, changes and ends follow each other: each request is answered once and in order, as
/// `ExpectedReplies` has it, and a message of a subscription is the newest and comes to subscribers only.
///
/// The input: what happens, event by event.
enum ConnectionBody {
    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        var decisions = Decisions(input)
        var run = ConnectionRun(&decisions)
        while !decisions.isAtEnd { try run.event(&decisions) }
        try run.end()
    }
}

private struct ConnectionRun {
    private var machine: ConnectionStateMachine
    private var expected: ExpectedReplies
    private let slotsMaximum: Int
    /// Slots that wait for the store, with the number of their requests.
    private var waiting: [(slot: UInt64, request: Int)] = []
    private var slotsGiven: Set<UInt64> = []
    private var answersGiven = 0
    /// The newest snapshot of each user; nil again once it was sent.
    private var changes: [UserID: Answer] = [:]
    private let dependencies = ConnectionStateMachine.Dependencies(serverVersion: "1.2.3", info: { ["a=b"] })

    init(_ decisions: inout Decisions) {
        slotsMaximum = 1 + decisions.below(8)
        let allows = decisions.flag()
        machine = ConnectionStateMachine(
            connectionID: 7,
            slotsMaximum: slotsMaximum,
            allowsWhenUnavailable: allows,
            subscriptionsMaximum: 3
        )
        expected = ExpectedReplies(connectionID: 7, allowsWhenUnavailable: allows, subscriptionsMaximum: 3)
    }

    mutating func event(_ decisions: inout Decisions) throws(Violation) {
        switch decisions.below(16) {
        case 0...6: try receive(decisions.request())
        case 7...10:
            // As the event loop does: the outcomes of a batch, and then what they make ready.
            for _ in 0...decisions.below(3) { complete(&decisions) }
            try takeReplies(withMessages: decisions.flag())
        case 11: try takeReplies(withMessages: true)
        case 12: try takeReplies(withMessages: decisions.flag())
        case 13: push(decisions.user())
        case 14:
            // Rare, because little comes after it.
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
        try requireEqual(machine.takesRequests && !expected.takesNothing, machine.takesRequests, "it takes more")
        guard machine.takesRequests else {
            try require(
                expected.takesNothing || !expected.isEmpty,
                "it takes nothing, and there is nothing to wait for"
            )
            return
        }
        let number = expected.receive(request)
        switch machine.receive(request, dependencies) {
        case .authenticate(let credentials, let hello):
            try require(!expected.waits(number), "\(request) was given to the tokens")
            let isGood = credentials.token.text == Decisions.goodToken
            let identity = Identity(tokenID: 1, name: "a", permissions: .everything)
            machine.conclude(isGood ? .success(identity) : .failure(.wrongToken), hello: hello, dependencies)
        case .replied, .unwatch: try require(!expected.waits(number), "\(request) was answered without the store")
        case .submit(_, _, let slot), .read(_, let slot), .watch(_, let slot):
            try require(expected.waits(number), "\(request) was given to the store")
            try require(slotsGiven.insert(slot).inserted, "the slot \(slot) is given twice")
            waiting.append((slot, number))
        }
        try require(waiting.count <= slotsMaximum, "\(waiting.count) are under way; \(slotsMaximum) may be")
    }

    private mutating func complete(_ decisions: inout Decisions) {
        guard !waiting.isEmpty else { return }
        let (slot, request) = waiting.remove(at: decisions.below(waiting.count))
        let outcome = decisions.outcome(isSubscription: expected.isSubscription(request)) {
            answersGiven += 1
            return answersGiven
        }
        expected.complete(request, outcome)
        machine.complete(slot: slot, outcome)
    }

    private mutating func push(_ user: UserID) {
        answersGiven += 1
        let answer = Answer(user: user, status: .ok, snapshot: .counting(answersGiven))
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

    /// What came out must be the replies whose turn has come, and then messages.
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
            withMessages && expected.hearsMessages || messages.isEmpty,
            "messages to a peer that does not take them: \(messages)"
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
        throw Violation(description: "nobody is to be told \(message); subscribed: \(expected.channels)")
    }

    /// Everything that waits is answered, and a connection that takes nothing more is over then.
    mutating func end() throws(Violation) {
        // From the last to the first: the hardest order.
        while let (slot, request) = waiting.popLast() {
            expected.complete(request, .done)
            machine.complete(slot: slot, .done)
        }
        try takeReplies(withMessages: true)
        try require(expected.isEmpty, "requests without a reply")
        try require(machine.isIdle, "it is not idle, and everything is answered")
        try requireEqual(machine.isFinished, expected.isFinished, "it is finished")
        try requireEqual(machine.takesRequests, !expected.takesNothing, "it takes requests")
        try checkThatChangesAreTold()
    }

    /// Whoever is subscribed now is told what changes now.
    private mutating func checkThatChangesAreTold() throws(Violation) {
        guard expected.hearsMessages else { return }
        for user in expected.channels.keys { push(user) }
        try takeReplies(withMessages: true)
        for user in expected.channels.keys { try require(changes[user] == nil, "\(user) was not told of") }
    }
}
