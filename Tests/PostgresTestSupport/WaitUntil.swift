/// A condition did not come to hold; says which one.
public struct TooLate: Error, CustomStringConvertible {
    public let description: String
}

/// Asks again and again until the condition holds.
///
/// The pauses are for the others: tests that asked without one would take the processors from what they wait for.
///
/// - Throws: `TooLate` when it does not hold within the limit.
public func waitUntil(
    _ what: String,
    within limit: Duration = .seconds(30),
    file: StaticString = #fileID,
    line: Int = #line,
    _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit
    while try await !condition() {
        guard ContinuousClock.now < deadline else {
            throw TooLate(description: "not within \(limit), waited for at \(file):\(line): \(what)")
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}
