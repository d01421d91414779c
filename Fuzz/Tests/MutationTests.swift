import Foundation
import TestSupport
import Testing

@Suite("Random changes of the corpus")
struct MutationTests {
    /// libFuzzer, which also looks at what an input reaches, runs each night (script/nightly); this many are a gate.
    private static let inputs = isLongRun ? 20_000 : 5_000

    @Test("Every target's properties hold for inputs like those of the corpus", arguments: FuzzTarget.all)
    func holds(_ target: FuzzTarget) throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("changed inputs of \(target.name) with seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let mutator = Mutator(
            corpus: try Corpus.inputs(of: target).map(\.bytes),
            dictionary: try Corpus.words(of: target.dictionary),
            bytesMaximum: target.bytesMaximum
        )
        // After a trap, which ends the process, the file has the input that caused it.
        let last = try LastInput(of: target)
        for number in 0..<MutationTests.inputs {
            let input = mutator.input(using: &random)
            last.write(input)
            do throws(Violation) {
                try target.check(input)
            } catch {
                Issue.record("\(target.name), seed \(seed), input \(number), \(input): \(error)")
            }
        }
        last.remove()
    }
}

/// Below .build/fuzz, named after its target.
private struct LastInput {
    private let path: String
    private let descriptor: Int32

    init(of target: FuzzTarget) throws {
        let folder = Corpus.folder.deletingLastPathComponent().appending(path: ".build/fuzz")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        path = folder.appending(path: "last-\(target.name)").path
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw POSIXError(.EIO) }
    }

    func write(_ input: [UInt8]) {
        _ = pwrite(descriptor, input, input.count, 0)
        ftruncate(descriptor, off_t(input.count))
    }

    func remove() {
        close(descriptor)
        unlink(path)
    }
}
