/// How long a test waits for what comes in a moment on an idle machine. It tells a hang from slowness, and no test
/// waits for its end.
public let waitLimit = Duration.seconds(60)

/// A condition did not come to hold; says which one.
public struct TooLate: Error, CustomStringConvertible {
    public let description: String
}

/// Checks a condition again and again until it holds.
///
/// The pauses are for the others: tests that checked without one would take the processors from what they wait for.
///
/// - Throws: `TooLate` when it does not hold within `waitLimit`.
public func waitUntil(
    _ what: String,
    file: StaticString = #fileID,
    line: Int = #line,
    _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + waitLimit
    while try await !condition() {
        guard ContinuousClock.now < deadline else {
            throw TooLate(description: "not within \(waitLimit), waited for at \(file):\(line): \(what)")
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}
