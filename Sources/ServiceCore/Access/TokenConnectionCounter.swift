import Synchronization

/// Open connections by token, over all event loops.
final class TokenConnectionCounter: Sendable {
    private struct Entry {
        var name: String
        var connections: Int
    }

    /// The connections of each token, by its id.
    private let entries = Mutex<[Int64: Entry]>([:])

    /// - Returns: false if the token has `maximum` connections already.
    func add(_ identity: Identity, atMost maximum: Int) -> Bool {
        entries.withLock { entries in
            let connections = entries[identity.tokenID]?.connections ?? 0
            guard connections < maximum else { return false }
            entries[identity.tokenID] = Entry(name: identity.name, connections: connections + 1)
            return true
        }
    }

    func remove(_ identity: Identity) {
        entries.withLock { entries in
            guard let entry = entries[identity.tokenID] else { return }
            entries[identity.tokenID] =
                entry.connections > 1 ? Entry(name: entry.name, connections: entry.connections - 1) : nil
        }
    }

    /// Tokens with open connections.
    var tokenIDs: [Int64] { entries.withLock { Array($0.keys) } }

    /// Connections by name, added up over the tokens that share it.
    var connectionsByName: [String: Int] {
        entries.withLock { entries in
            entries.values.reduce(into: [:]) { $0[$1.name, default: 0] += $1.connections }
        }
    }
}
