import Testing
import Usage

@testable import UsageStore

/// The instant that a test spells out; a typing error ends the test run, which is what a wrong fixture should do.
func at(_ text: String) -> Instant {
    guard let instant = Instant(text) else { preconditionFailure("no instant: \(text)") }
    return instant
}

func billingPeriod(_ label: String) -> BillingPeriod {
    guard let period = BillingPeriod(label) else { preconditionFailure("no period: \(label)") }
    return period
}

func messageKey(_ text: String) -> MessageKey {
    guard let key = MessageKey(text) else { preconditionFailure("no key: \(text)") }
    return key
}

/// Users 0, 1, 2 … in ascending order; two neighbours belong to different lanes of two.
func user(_ number: UInt64) -> UserID {
    UserID(high: 0x7f1c_0a52_3a51_4a7e, low: 0x9d55_0b6a_3f1f_0000 + number)
}

extension Request {
    /// A request of a pure test: its slot tells it apart.
    static func fixture(
        _ user: UserID,
        _ operation: StoreOperation,
        slot: UInt64 = 0,
        connection: Int = 0,
        deadline: ContinuousClock.Instant
    ) -> Request {
        Request(
            user: user,
            operation: operation,
            returnAddress: ReturnAddress(mailbox: 0, connection: connection, slot: slot),
            deadline: deadline
        )
    }
}

extension Outcome {
    var answer: Answer? { if case .answer(let answer) = self { answer } else { nil } }
    var failure: StoreError? { if case .failure(let error) = self { error } else { nil } }
    var isAllowed: Bool { answer?.status == .allowed }
}

/// Splitmix64: a test that prints its seed can be run again.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    mutating func element<Element>(of choices: [Element]) -> Element {
        choices[Int.random(in: choices.indices, using: &self)]
    }

    mutating func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &self) < percent
    }
}
