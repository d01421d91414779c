import Synchronization

/// A flag that several tasks share.
public final class Flag: Sendable {
    private let flag = Atomic(false)

    public init() {}

    public var isSet: Bool { flag.load(ordering: .relaxed) }
    public func set() { flag.store(true, ordering: .relaxed) }
    public func clear() { flag.store(false, ordering: .relaxed) }
}
