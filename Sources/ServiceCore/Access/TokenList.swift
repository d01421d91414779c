import Crypto
import Engine
import LineProtocol

/// The live tokens.
///
/// A presented token is hashed and compared with all bytes of every live digest, without a branch that depends on the
/// result. So the duration reveals only the number of live tokens, and neither how much of a guess was right nor which
/// token matched. Even a measurable comparison would only reveal bytes of the SHA-256 of a guess, which lead to no
/// token.
struct TokenList: Sendable {
    private var digests: ContiguousArray<SIMD4<UInt64>> = []
    private var tokens: ContiguousArray<(identity: Identity, expiresAt: ContinuousClock.Instant?)> = []
    /// The identities by the token's id: thousands of connections look up theirs whenever one token changes.
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

    /// - Returns: nil if the token is no longer live.
    func identity(ofToken tokenID: Int64) -> Identity? {
        identities[tokenID]
    }

    /// - Returns: nil if no token of that name and secret is live at `now`.
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
        // The index of the equal digest plus 1; 0 if none is. At most one is equal.
        var found: UInt64 = 0
        for index in digests.indices {
            let words = digests[index] ^ presented
            let difference = words[0] | words[1] | words[2] | words[3]
            // The highest bit of x | -x is 0 only for x = 0: all ones if equal, otherwise 0.
            let isEqual = ((difference | (0 &- difference)) >> 63) &- 1
            found |= isEqual & UInt64(index + 1)
        }
        return found == 0 ? nil : Int(found) - 1
    }
}
