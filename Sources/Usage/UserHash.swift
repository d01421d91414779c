extension UserID {
    /// PostgreSQL's `uuid_hash_extended(user_id, 0)`, by which a database divides its users into buckets.
    ///
    /// It is Bob Jenkins's lookup3 over the 16 bytes of the UUID, as `hash_bytes_extended` computes it on machines with
    /// little-endian numbers. Databases keep the division, so the result must never change.
    public var hash: UInt64 {
        let words = (
            UInt32(truncatingIfNeeded: high >> 32).byteSwapped, UInt32(truncatingIfNeeded: high).byteSwapped,
            UInt32(truncatingIfNeeded: low >> 32).byteSwapped, UInt32(truncatingIfNeeded: low).byteSwapped
        )
        // The start is the sum of the golden ratio, the length, and a constant of PostgreSQL's.
        let start: UInt32 = 0x9E37_79B9 &+ 16 &+ 3_923_095
        var state = Lookup3(a: start &+ words.0, b: start &+ words.1, c: start &+ words.2)
        state.mix()
        state.a &+= words.3
        state.finish()
        return UInt64(state.b) << 32 | UInt64(state.c)
    }
}

/// The three numbers that lookup3 mixes.
private struct Lookup3 {
    var a, b, c: UInt32

    @inline(__always)
    mutating func mix() {
        a = (a &- c) ^ Lookup3.rotate(c, 4)
        c &+= b
        b = (b &- a) ^ Lookup3.rotate(a, 6)
        a &+= c
        c = (c &- b) ^ Lookup3.rotate(b, 8)
        b &+= a
        a = (a &- c) ^ Lookup3.rotate(c, 16)
        c &+= b
        b = (b &- a) ^ Lookup3.rotate(a, 19)
        a &+= c
        c = (c &- b) ^ Lookup3.rotate(b, 4)
        b &+= a
    }

    @inline(__always)
    mutating func finish() {
        c = (c ^ b) &- Lookup3.rotate(b, 14)
        a = (a ^ c) &- Lookup3.rotate(c, 11)
        b = (b ^ a) &- Lookup3.rotate(a, 25)
        c = (c ^ b) &- Lookup3.rotate(b, 16)
        a = (a ^ c) &- Lookup3.rotate(c, 4)
        b = (b ^ a) &- Lookup3.rotate(a, 14)
        c = (c ^ b) &- Lookup3.rotate(b, 24)
    }

    @inline(__always)
    private static func rotate(_ value: UInt32, _ bits: UInt32) -> UInt32 {
        value &<< bits | value &>> (32 &- bits)
    }
}
