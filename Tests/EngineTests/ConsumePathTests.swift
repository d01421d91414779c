import Foundation
import Testing

/// The table in docs/contributors/architecture.md: the files to read to understand how a message is counted.
@Suite("The path of one CONSUME")
struct ConsumePathTests {
    private static let filesMaximum = 14

    @Test("passes through at most fourteen files, which exist")
    func files() throws {
        let root = URL(filePath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/contributors/architecture.md"), encoding: .utf8)
        let start = try #require(page.range(of: "\n## The path of one CONSUME\n")).upperBound
        let rest = page[start...]
        let section = rest[..<(rest.range(of: "\n## ")?.lowerBound ?? rest.endIndex)]
        let files = Set(section.split(separator: "`").filter { $0.contains("/") && !$0.contains(" ") })
        #expect(files.contains("sql/functions/headroom/counting/count_batch.sql"))
        #expect(files.count <= ConsumePathTests.filesMaximum)
        for file in files {
            #expect(FileManager.default.fileExists(atPath: root.appending(path: String(file)).path), "\(file)")
        }
    }
}
