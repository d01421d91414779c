/// The hash function SHA-1 (RFC 3174), from which UUIDs of version 5 are made. It is not for security.
///
/// It is implemented here because the client library and the engine would have to wait for a cryptography library to
/// compile (docs/decisions/0032-names-of-users.md).
struct SHA1 {
    private var state: (UInt32, UInt32, UInt32, UInt32, UInt32) =
        (0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0)
    /// The bytes that do not fill a block yet.
    private var pending: [UInt8] = []
    private var lengthBytes: UInt64 = 0

    private static let blockBytes = 64

    init() {
        pending.reserveCapacity(SHA1.blockBytes)
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        lengthBytes += UInt64(bytes.count)
        for byte in bytes { append(byte) }
    }

    mutating func finalize() -> (UInt32, UInt32, UInt32, UInt32, UInt32) {
        let lengthBits = lengthBytes * 8
        append(0x80)
        while pending.count != SHA1.blockBytes - 8 { append(0) }
        for index in 0..<8 { append(UInt8(truncatingIfNeeded: lengthBits >> UInt64(56 - index * 8))) }
        return state
    }

    private mutating func append(_ byte: UInt8) {
        pending.append(byte)
        guard pending.count == SHA1.blockBytes else { return }
        compress()
        pending.removeAll(keepingCapacity: true)
    }

    private mutating func compress() {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 80) { words in
            for index in 0..<16 {
                words[index] = pending[index * 4..<index * 4 + 4].reduce(0) { $0 << 8 | UInt32($1) }
            }
            for index in 16..<80 {
                words[index] =
                    (words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16]).rotatedLeft(by: 1)
            }
            var (a, b, c, d, e) = state
            for index in 0..<80 {
                let (mixed, constant): (UInt32, UInt32) =
                    switch index {
                    case 0..<20: (b & c | ~b & d, 0x5A82_7999)
                    case 20..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                    case 40..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
                    default: (b ^ c ^ d, 0xCA62_C1D6)
                    }
                let next = a.rotatedLeft(by: 5) &+ mixed &+ e &+ constant &+ words[index]
                (a, b, c, d, e) = (next, a, b.rotatedLeft(by: 30), c, d)
            }
            state = (state.0 &+ a, state.1 &+ b, state.2 &+ c, state.3 &+ d, state.4 &+ e)
        }
    }
}

extension UInt32 {
    fileprivate func rotatedLeft(by bits: UInt32) -> UInt32 { self << bits | self >> (32 - bits) }
}
