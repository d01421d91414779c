/// The latest time at which a request is answered, to the nanosecond.
///
/// Each request has one, in every queue and batch that it passes. `ContinuousClock.Instant` would be slow there: its
/// layout is known only at run time, so that each copy of a value that contains one calls the runtime.
public struct Deadline: Sendable, Comparable {
    private static let origin = ContinuousClock.now
    private let nanosecondsSinceOrigin: Int64

    /// - Parameter instant: at most 292 years away.
    public init(_ instant: ContinuousClock.Instant) {
        let (seconds, attoseconds) = (instant - Deadline.origin).components
        nanosecondsSinceOrigin = seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    public var instant: ContinuousClock.Instant { Deadline.origin + .nanoseconds(nanosecondsSinceOrigin) }

    public static func < (lhs: Deadline, rhs: Deadline) -> Bool {
        lhs.nanosecondsSinceOrigin < rhs.nanosecondsSinceOrigin
    }
}
