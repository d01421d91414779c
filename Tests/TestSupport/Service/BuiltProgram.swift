import Foundation

/// The URL of a program of this package that was built with the tests: in the folder of the environment variable
/// HEADROOM_TEST_BINARIES, else beside the test bundle, so that tests of a release build start the release build.
public func builtProgram(_ name: String) -> URL { programFolder.appending(path: name) }

private let programFolder: URL = {
    if let folder = ProcessInfo.processInfo.environment["HEADROOM_TEST_BINARIES"], !folder.isEmpty {
        return URL(filePath: folder)
    }
    // The bundle is the running program itself, or an argument of it.
    let arguments = CommandLine.arguments
    let argument = arguments.firstIndex(of: "--test-bundle-path").flatMap { arguments.dropFirst($0 + 1).first }
    var bundle = argument.map { URL(filePath: $0) } ?? Bundle.main.executableURL ?? URL(filePath: arguments[0])
    while bundle.pathExtension != "xctest", bundle.pathComponents.count > 1 { bundle.deleteLastPathComponent() }
    return bundle.deletingLastPathComponent()
}()

extension Process {
    public struct Failed: Error {}

    /// Runs a program and waits for its end.
    ///
    /// - Returns: its standard output.
    /// - Throws: `Failed` if its status is not 0.
    @discardableResult
    public static func run(
        _ program: URL,
        _ arguments: [String],
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> String {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.environment = environment
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed() }
        return text
    }

    /// Starts the process, and reads its standard output until `wanted` matches.
    ///
    /// - Returns: the match; nil if the process ended before.
    public func run(until wanted: Regex<Substring>) async throws -> String? {
        let output = Pipe()
        standardOutput = output
        standardInput = FileHandle.nullDevice
        let (chunks, continuation) = AsyncStream.makeStream(of: Data.self)
        let reading = output.fileHandleForReading
        reading.readabilityHandler = { handle in
            let chunk = handle.availableData
            if chunk.isEmpty { continuation.finish() } else { continuation.yield(chunk) }
        }
        defer { reading.readabilityHandler = nil }
        try run()
        var text = ""
        for await chunk in chunks {
            text += String(decoding: chunk, as: UTF8.self)
            if let match = text.firstMatch(of: wanted) { return String(match.0) }
        }
        return nil
    }
}
