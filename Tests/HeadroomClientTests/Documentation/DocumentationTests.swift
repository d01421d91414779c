import Foundation
import Testing

@testable import HeadroomClient

@Suite("The library's documentation matches the library")
struct DocumentationTests {
    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// Lines without their indentation, each ended.
    private static func lines(_ text: some StringProtocol) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: true)
            .map { $0.drop { $0 == " " } }.filter { !$0.isEmpty }
            .map { "\($0)\n" }.joined()
    }

    @Test(
        "Each block of code is a part of a compiled snippet, line for line",
        arguments: [
            "Sources/HeadroomClient/Documentation.docc/HeadroomClient.md",
            "Sources/HeadroomClient/Documentation.docc/GettingStarted.md", "docs/start-swift.md",
        ]
    )
    func code(path: String) throws {
        let snippet = path == "docs/start-swift.md" ? "StartSwift" : "GettingStarted"
        let compiled = Self.lines(try Self.text("Snippets/\(snippet).swift"))
        let blocks = try Self.text(path).components(separatedBy: "```swift\n").dropFirst()
            .compactMap { $0.components(separatedBy: "```").first }
        #expect(!blocks.isEmpty)
        for block in blocks {
            #expect(compiled.contains("\n" + Self.lines(block)), "not part of a snippet:\n\(block)")
        }
    }

    @Test("docs/client-library.md lists each metric and each error code of the client")
    func names() throws {
        let page = try Self.text("docs/client-library.md")
        for name in ClientMetrics.Name.allCases { #expect(page.contains("| `\(name.rawValue)` |")) }
        let codes: [HeadroomError.Code] = [.unreachable, .cancelled, .shutDown, .tooManyRequests, .malformedReply]
        for code in codes { #expect(page.contains("| `\(code.rawValue)` |")) }
        let documented = page.matches(of: /\| `(headroom_client_\w+)` \|/).map { String($0.1) }
        #expect(Set(documented) == Set(ClientMetrics.Name.allCases.map(\.rawValue)))
    }

    @Test("docs/client-library.md lists each setting with its default")
    func settings() throws {
        let page = try Self.text("docs/client-library.md")
        let configuration = HeadroomClient.Configuration()
        let mirror = Mirror(reflecting: configuration)
        for case (let name?, let value) in mirror.children where !["endpoints", "tls", "credentials"].contains(name) {
            let row = try #require(page.split(separator: "\n").first { $0.hasPrefix("| `\(name)` |") }, "\(name)")
            #expect(row.contains("| `\(Self.shown(value))` |"), "\(name) is \(Self.shown(value))")
        }
    }

    private static func shown(_ value: Any) -> String {
        switch value {
        case let duration as Duration: shown(duration)
        case let range as ClosedRange<Duration>: "\(shown(range.lowerBound))–\(shown(range.upperBound))"
        case let policy as UnreachablePolicy: policy.rawValue
        default: "\(value)"
        }
    }

    private static func shown(_ duration: Duration) -> String {
        duration < .seconds(1)
            ? "\(Int(duration / .milliseconds(1))) ms" : "\(duration.components.seconds) s"
    }

    @Test("The library has no dependency on libpq")
    func closure() throws {
        let manifest = try Self.text("Package.swift")
        var dependencies: [String: [String]] = [:]
        // A target, up to the end of its list of dependencies; names in quotes are targets of this package.
        for match in manifest.matches(of: /name: "(\w+)",\s+dependencies: \[((?:[^\[\]])*)\]/) {
            let own = String(match.2).replacing(/\.product\([^)]*\)/, with: "")
            dependencies[String(match.1)] = own.matches(of: /"(\w+)"/).map { String($0.1) }
        }
        #expect(dependencies["Engine"]?.contains("Postgres") == true, "the manifest is not understood")
        var reached: Set<String> = []
        var next = ["HeadroomClient"]
        while let target = next.popLast() {
            if reached.insert(target).inserted { next += dependencies[target] ?? [] }
        }
        #expect(reached == ["HeadroomClient", "LineProtocol", "TransportSecurity", "Usage"])
    }
}
