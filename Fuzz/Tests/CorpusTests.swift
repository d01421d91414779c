import Foundation
import Testing

@Suite("What the fuzzers have found")
struct CorpusTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

    private static func inputs(of target: FuzzTarget, in place: String) throws -> [(name: String, bytes: [UInt8])] {
        let place = folder.appending(path: "\(place)/\(target.name)")
        guard FileManager.default.fileExists(atPath: place.path) else { return [] }
        return try FileManager.default.contentsOfDirectory(at: place, includingPropertiesForKeys: nil)
            .map { ($0.lastPathComponent, try [UInt8](Data(contentsOf: $0))) }
    }

    private static func inputs(of target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
        try inputs(of: target, in: "Corpus") + inputs(of: target, in: "Found")
    }

    @Test("Every input of the corpus does what it should", arguments: FuzzTarget.all)
    func holds(_ target: FuzzTarget) throws {
        let inputs = try CorpusTests.inputs(of: target)
        #expect(inputs.count >= 10, "the corpus of \(target.name) is there")
        for input in inputs {
            #expect(throws: Never.self, "\(target.name)/\(input.name)") { try target.check(input.bytes) }
        }
    }

    @Test("So does each of them cut short", arguments: FuzzTarget.all)
    func cut(_ target: FuzzTarget) throws {
        for input in try CorpusTests.inputs(of: target) {
            for count in stride(from: 0, to: input.bytes.count, by: 1 + input.bytes.count / 4) {
                #expect(throws: Never.self, "\(target.name)/\(input.name), \(count) bytes of it") {
                    try target.check(Array(input.bytes.prefix(count)))
                }
            }
        }
    }

    @Test("The corpus is small")
    func size() throws {
        let inputs = try FuzzTarget.all.flatMap { try CorpusTests.inputs(of: $0) }
        #expect(inputs.count <= 600)
        #expect(inputs.allSatisfy { $0.bytes.count <= 4_096 })
    }
}

extension FuzzTarget: CustomTestStringConvertible {
    public var testDescription: String { name }
}
