import Testing

@Suite("The fuzzers' corpus")
struct CorpusTests {
    @Test("Every input of the corpus satisfies its target's properties", arguments: FuzzTarget.all)
    func holds(_ target: FuzzTarget) throws {
        let inputs = try Corpus.inputs(of: target)
        #expect(inputs.count >= 10, "the corpus of \(target.name) is there")
        for input in inputs {
            #expect(throws: Never.self, "\(target.name)/\(input.name)") { try target.check(input.bytes) }
        }
    }

    @Test("Every input of the corpus satisfies its target's properties when it is cut short", arguments: FuzzTarget.all)
    func cut(_ target: FuzzTarget) throws {
        for input in try Corpus.inputs(of: target) {
            for count in stride(from: 0, to: input.bytes.count, by: 1 + input.bytes.count / 4) {
                #expect(throws: Never.self, "\(target.name)/\(input.name), \(count) bytes of it") {
                    try target.check(Array(input.bytes.prefix(count)))
                }
            }
        }
    }

    @Test("The corpus is small")
    func size() throws {
        for target in FuzzTarget.all {
            let inputs = try Corpus.inputs(of: target)
            #expect(inputs.count <= 500, "\(target.name)")
            #expect(inputs.allSatisfy { $0.bytes.count <= 4_096 }, "\(target.name)")
        }
    }
}

extension FuzzTarget: CustomTestStringConvertible {
    public var testDescription: String { name }
}
