import LineProtocol
import Synchronization

/// Makes unique keys: a random start, then counting up.
///
/// A key has 90 bits in 15 characters, the most that a `String` holds without an allocation. If a million clients make
/// 2^30 keys each, the chance that any two keys are equal is 1 in 2^20: there are 2^39 pairs of clients, and the ranges
/// of a pair overlap with a chance of 2^31 in 2^90. Equal keys matter only for the same user.
final class MessageKeys: Sendable {
    private let last: Mutex<UInt128>

    init() {
        var generator = SystemRandomNumberGenerator()
        last = Mutex(UInt128.random(in: 0...UInt128.max, using: &generator))
    }

    func next() -> MessageKey {
        var bits = last.withLock { last in
            last &+= 1
            return last
        }
        let text = String(unsafeUninitializedCapacity: 15) { bytes in
            for index in bytes.indices {
                bytes[index] = MessageKeys.digit(UInt8(truncatingIfNeeded: bits & 63))
                bits >>= 6
            }
            return 15
        }
        return MessageKey(validated: text)
    }

    /// - Parameter number: 0 to 63.
    private static func digit(_ number: UInt8) -> UInt8 {
        switch number {
        case 0..<26: UInt8(ascii: "A") + number
        case 26..<52: UInt8(ascii: "a") + number - 26
        case 52..<62: UInt8(ascii: "0") + number - 52
        case 62: UInt8(ascii: "-")
        default: UInt8(ascii: "_")
        }
    }
}
