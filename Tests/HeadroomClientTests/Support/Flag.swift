import Synchronization

/// A flag that several tasks look at.
final class Flag: Sendable {
    private let flag: Atomic<Bool>

    init() { flag = Atomic(false) }

    var isSet: Bool { flag.load(ordering: .relaxed) }
    func set() { flag.store(true, ordering: .relaxed) }
}
