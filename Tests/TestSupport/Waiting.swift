/// The timeout of waits and statements that take a moment on an idle machine, and some seconds at most. A test that
/// reaches it hangs, however slow the machine is.
public let waitLimit = Duration.seconds(600)

/// A condition was not true within `waitLimit`.
public struct WaitTimeout: Error, CustomStringConvertible {
    public let description: String
}

/// Checks a condition every 2 ms until it is true.
///
/// - Throws: `WaitTimeout` if it is not true within `waitLimit`.
public func waitUntil(
    _ what: String,
    file: StaticString = #fileID,
    line: Int = #line,
    _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + waitLimit
    while try await !condition() {
        guard ContinuousClock.now < deadline else {
            throw WaitTimeout(description: "not within \(waitLimit), waited for at \(file):\(line): \(what)")
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}
