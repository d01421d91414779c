/// The SHA-256 (FIPS 180-4) of the id from which a message key is made; it is not for secrets. It is implemented here
/// because swift-crypto would be the largest dependency of the client library.
enum MessageKeyDigest {
    private typealias State = (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32)

    private static let blockBytes = 64

    /// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
    private static let roundConstants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]

    /// Returns 64 lower-case hexadecimal digits.
    static func hexadecimalSHA256(of bytes: UnsafeRawBufferPointer) -> String {
        // The first 32 bits of the fractional parts of the square roots of the first 8 primes.
        var state: State = (
            0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19
        )
        let rest = bytes.count % blockBytes
        for start in stride(from: 0, to: bytes.count - rest, by: blockBytes) {
            compress(UnsafeRawBufferPointer(rebasing: bytes[start..<start + blockBytes]), into: &state)
        }
        // The padding is a one bit, zeros, and the message's length in bits as the last eight bytes of a block.
        var last = Array(bytes.suffix(rest))
        last.append(0x80)
        let end = (last.count + 8 + blockBytes - 1) / blockBytes * blockBytes
        last += Array(repeating: 0, count: end - 8 - last.count)
        last += withUnsafeBytes(of: (UInt64(bytes.count) * 8).bigEndian) { Array($0) }
        last.withUnsafeBytes { padded in
            for start in stride(from: 0, to: padded.count, by: blockBytes) {
                compress(UnsafeRawBufferPointer(rebasing: padded[start..<start + blockBytes]), into: &state)
            }
        }
        let (a, b, c, d, e, f, g, h) = state
        return [a, b, c, d, e, f, g, h].map(hexadecimal).joined()
    }

    private static func hexadecimal(_ word: UInt32) -> String {
        let digits = String(word, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    private static func compress(_ block: UnsafeRawBufferPointer, into state: inout State) {
        var schedule = (0..<16).map { UInt32(bigEndian: block.loadUnaligned(fromByteOffset: $0 * 4, as: UInt32.self)) }
        for index in 16..<64 {
            let (early, late) = (schedule[index - 15], schedule[index - 2])
            let small0 = rotatedRight(early, 7) ^ rotatedRight(early, 18) ^ early >> 3
            let small1 = rotatedRight(late, 17) ^ rotatedRight(late, 19) ^ late >> 10
            schedule.append(schedule[index - 16] &+ small0 &+ schedule[index - 7] &+ small1)
        }
        var (a, b, c, d, e, f, g, h) = state
        for (constant, word) in zip(roundConstants, schedule) {
            let big1 = rotatedRight(e, 6) ^ rotatedRight(e, 11) ^ rotatedRight(e, 25)
            let choice = (e & f) ^ (~e & g)
            let sum1 = h &+ big1 &+ choice &+ constant &+ word
            let big0 = rotatedRight(a, 2) ^ rotatedRight(a, 13) ^ rotatedRight(a, 22)
            let majority = (a & b) ^ (a & c) ^ (b & c)
            (h, g, f, e, d, c, b, a) = (g, f, e, d &+ sum1, c, b, a, sum1 &+ big0 &+ majority)
        }
        state.0 &+= a
        state.1 &+= b
        state.2 &+= c
        state.3 &+= d
        state.4 &+= e
        state.5 &+= f
        state.6 &+= g
        state.7 &+= h
    }

    private static func rotatedRight(_ word: UInt32, _ bits: UInt32) -> UInt32 {
        word >> bits | word << (32 - bits)
    }
}
