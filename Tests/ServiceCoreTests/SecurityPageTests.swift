import Foundation
import Testing

@testable import ServiceCore

@Suite("The security pages agree with the tests and the settings")
struct SecurityPageTests {
    private static func page(_ name: String = "security") throws -> String {
        try String(contentsOf: Repository.root.appending(path: "docs/contributors/\(name).md"), encoding: .utf8)
    }

    /// The text of all test files of that name, in any folder.
    private static func tests(in file: String) -> String {
        var text = ""
        for folder in ["Tests", "Fuzz/Tests"].map({ Repository.root.appending(path: $0) }) {
            let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
            while let found = files?.nextObject() as? URL {
                guard found.lastPathComponent == file else { continue }
                text += (try? String(contentsOf: found, encoding: .utf8)) ?? ""
            }
        }
        return text
    }

    @Test("every test that the page names exists")
    func tests() throws {
        var count = 0
        for match in try SecurityPageTests.page().matches(of: /(?m)^- `(\w+): (.+)`$/) {
            count += 1
            SecurityPageTests.expect(String(match.2), in: String(match.1))
        }
        #expect(count >= 30)
    }

    @Test("every test that the page of figures names exists")
    func testsOfFigures() throws {
        var count = 0
        let tests = /`(\w+Tests|[a-z]+_[a-z]+|secrets)`(?:: ([^|;]+))?/
        for match in try SecurityPageTests.page("security-figures").matches(of: tests) {
            count += 1
            SecurityPageTests.expect(match.2?.trimmingCharacters(in: .whitespaces), in: String(match.1))
        }
        #expect(count >= 20)
    }

    /// - Parameter name: of a test; nil for all tests of the file.
    private static func expect(_ name: String?, in file: String) {
        let isSwift = file.hasSuffix("Tests")
        let declaration =
            isSwift
            ? "@Test(\"" + (name.map { "\($0)\"" } ?? "")
            : "def test_" + (name.map { $0.replacing(" ", with: "_") + "(self)" } ?? "")
        #expect(tests(in: file + (isSwift ? ".swift" : ".py")).contains(declaration), "\(file): \(name ?? "any")")
    }

    @Test("every setting that the page names exists")
    func settings() throws {
        let names = Set(Settings.all.map(\.name))
        var count = 0
        for paragraph in try SecurityPageTests.page().matches(of: /(?s)(?:Settings|Limits): (`.+?)\.\n\n/) {
            for name in String(paragraph.1).matches(of: /`([a-z-]+)`/) {
                count += 1
                #expect(names.contains(String(name.1)), "\(name.1)")
            }
        }
        #expect(count >= 10)
    }
}
