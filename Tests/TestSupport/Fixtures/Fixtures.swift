import Usage

/// The instant that a test spells out; a typing error ends the test run, which is what a wrong fixture should do.
public func at(_ text: String) -> Instant {
    guard let instant = Instant(text) else { preconditionFailure("no instant: \(text)") }
    return instant
}

public func billingPeriod(_ label: String) -> BillingPeriod {
    guard let period = BillingPeriod(label) else { preconditionFailure("no period: \(label)") }
    return period
}

public func messageKey(_ text: String) -> MessageKey {
    MessageKey(known: text)
}

/// Users 0, 1, 2 … in ascending order; two neighbours belong to different lanes of two.
public func user(_ number: UInt64) -> UserID {
    UserID(high: 0x7f1c_0a52_3a51_4a7e, low: 0x9d55_0b6a_3f1f_7c10 + number)
}

public let ada = user(1)
public let ben = user(2)

extension UserID {
    /// For tests that share a service, or that must not share a user with another test.
    public static var random: UserID { UserID(high: .random(in: 0...(.max)), low: .random(in: 0...(.max))) }
}
