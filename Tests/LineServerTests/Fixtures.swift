import Engine
import LineProtocol
import NIOCore
import TestSupport
import Usage

@testable import LineServer
@testable import ServiceCore

extension UsageSnapshot {
    /// A subscriber, at an instant that no test looks at.
    static func paid(used: Int) -> UsageSnapshot { .monthly(used: used) }
}

extension ConnectionStateMachine {
    static func fixture(slots: Int = 100, allows: Bool = false, subscriptions: Int = 100) -> ConnectionStateMachine {
        ConnectionStateMachine(
            connectionID: 7,
            slotsMaximum: slots,
            allowsWhenUnavailable: allows,
            subscriptionsMaximum: subscriptions,
            words: CurrentWords()
        )
    }
}

func replies(_ machine: inout ConnectionStateMachine) -> String {
    String(buffer: machine.takeReplies() ?? ByteBuffer())
}

func text(_ replies: [Reply]) -> String {
    var buffer = ByteBuffer()
    for reply in replies { reply.encode(into: &buffer) }
    return String(buffer: buffer)
}
