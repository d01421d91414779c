import Crypto
import Engine
import LineProtocol

/// The live tokens, and whose a presented one is.
///
/// A presented token is hashed and compared with every live digest, to the last byte of the last one, without a branch
/// that depends on what was found: how long it takes tells nothing about how much of it was right, and nothing about
/// which token it is. Only how many tokens are live shows. Beyond that, who could time a comparison of digests would
/// learn about bytes of SHA-256 of his guess, which lead to no token.
struct TokenList: Sendable {
    private var digests: ContiguousArray<SIMD4<UInt64>> = []
    private var tokens: ContiguousArray<(identity: Identity, expiresAt: ContinuousClock.Instant?)> = []
    /// By the token's number: thousands of connections ask for theirs whenever one token changes.
    private var identities: [Int64: Identity] = [:]

    init() {}

    init(_ live: [LiveToken]) {
        for token in live where token.digest.count == SHA256.byteCount {
            digests.append(token.digest.withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) })
            let identity = Identity(
                tokenID: token.id,
                name: token.name,
                permissions: Permissions(token.scopes.compactMap { Scope(rawValue: $0) })
            )
            tokens.append((identity, token.expiresAt))
            identities[token.id] = identity
        }
    }

    var isEmpty: Bool { tokens.isEmpty }

    /// By the token's number; nil when it is not live any more.
    func identity(_ tokenID: Int64) -> Identity? {
        identities[tokenID]
    }

    /// Whose token that is; nil for none that is live at `now`, or when it is not of that name.
    func identity(of credentials: Credentials, at now: ContinuousClock.Instant) -> Identity? {
        var token = credentials.token.text
        let index = token.withUTF8 { find(SHA256.hash(data: UnsafeRawBufferPointer($0))) }
        guard let index else { return nil }
        let (identity, expiresAt) = tokens[index]
        if let name = credentials.name, name != identity.name { return nil }
        if let expiresAt, now >= expiresAt { return nil }
        return identity
    }

    private func find(_ digest: SHA256.Digest) -> Int? {
        let presented = digest.withUnsafeBytes { $0.loadUnaligned(as: SIMD4<UInt64>.self) }
        // One more than where it stands; 0 is nowhere. At most one digest is equal.
        var place: UInt64 = 0
        for index in digests.indices {
            let words = digests[index] ^ presented
            let difference = words[0] | words[1] | words[2] | words[3]
            // The highest bit of x | -x is 0 for 0 only: all ones where they are equal, 0 where they are not.
            let isEqual = ((difference | (0 &- difference)) >> 63) &- 1
            place |= isEqual & UInt64(index + 1)
        }
        return place == 0 ? nil : Int(place) - 1
    }
}
