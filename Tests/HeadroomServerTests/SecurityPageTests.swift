import Foundation
import Testing

@testable import HeadroomServer

@Suite("The page on security is held against the tests and the settings")
struct SecurityPageTests {
    private static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func page() throws -> String {
        try String(contentsOf: root.appending(path: "docs/security.md"), encoding: .utf8)
    }

    /// The text of all files of that name among the tests, wherever they lie.
    private static func tests(in file: String) -> String {
        var text = ""
        for folder in ["Tests", "Fuzz/Tests"].map({ root.appending(path: $0) }) {
            let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
            while let found = files?.nextObject() as? URL {
                guard found.lastPathComponent == file else { continue }
                text += (try? String(contentsOf: found, encoding: .utf8)) ?? ""
            }
        }
        return text
    }

    @Test("every test that it names is there")
    func tests() throws {
        var count = 0
        for match in try SecurityPageTests.page().matches(of: /(?m)^- `(\w+): (.+)`$/) {
            let (file, name) = (String(match.1), String(match.2))
            count += 1
            if file.hasSuffix("Tests") {
                let text = SecurityPageTests.tests(in: "\(file).swift")
                #expect(text.contains("@Test(\"\(name)\""), "\(file): \(name)")
            } else {
                let text = SecurityPageTests.tests(in: "\(file).py")
                let function = "def test_" + name.replacing(" ", with: "_") + "(self)"
                #expect(text.contains(function), "\(file): \(name)")
            }
        }
        #expect(count >= 30)
    }

    @Test("every setting that it names is there")
    func settings() throws {
        let names = Set(Setting.all.map(\.name))
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
