/// Makes new inputs from the corpus as libFuzzer does, but without measuring coverage: a few random changes, words of
/// the dictionary, two inputs joined.
struct Mutator {
    let corpus: [[UInt8]]
    let dictionary: [[UInt8]]
    let bytesMaximum: Int

    func input(using random: inout some RandomNumberGenerator) -> [UInt8] {
        var bytes = corpus.randomElement(using: &random) ?? []
        for _ in 0..<Int.random(in: 1...6, using: &random) { mutate(&bytes, using: &random) }
        return Array(bytes.prefix(bytesMaximum))
    }

    private func mutate(_ bytes: inout [UInt8], using random: inout some RandomNumberGenerator) {
        let position = Int.random(in: 0...bytes.count, using: &random)
        let end = min(bytes.count, position + Int.random(in: 1...16, using: &random))
        switch Int.random(in: 0..<8, using: &random) {
        case 0: bytes.insert(.random(in: 0...255, using: &random), at: position)
        case 1: bytes.insert(contentsOf: dictionary.randomElement(using: &random) ?? [], at: position)
        case 2: bytes.removeSubrange(position..<end)
        case 3: bytes.insert(contentsOf: bytes[position..<end], at: position)
        case 4: bytes.replaceSubrange(position..<end, with: dictionary.randomElement(using: &random) ?? [])
        case 5:
            let other = corpus.randomElement(using: &random) ?? []
            bytes.replaceSubrange(position..., with: other.dropFirst(Int.random(in: 0...other.count, using: &random)))
        case 6 where position < bytes.count: bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        default: if position < bytes.count { bytes[position] = .random(in: 0...255, using: &random) }
        }
    }
}
