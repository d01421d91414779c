import HeadroomClient
import TestSupport

extension HeadroomClient {
    /// Eight tasks send messages of the user, one after the other, until `work` ends.
    ///
    /// - Returns: how many messages were sent.
    /// - Throws: the first error of a message, or of `work`.
    func consume(for user: UserID, during work: () async throws -> Void) async throws -> Int {
        try await withThrowingTaskGroup(of: Int.self) { group in
            let over = Flag()
            for _ in 0..<8 {
                group.addTask {
                    var count = 0
                    while !over.isSet {
                        _ = try await self.consume(user)
                        count += 1
                    }
                    return count
                }
            }
            try await work()
            over.set()
            return try await group.reduce(0, +)
        }
    }
}
