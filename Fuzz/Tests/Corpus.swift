import Foundation

/// The inputs and words that the fuzzers start with.
enum Corpus {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

    /// The inputs that the fuzzers have chosen, and those that once failed.
    static func inputs(of target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
        try inputs(of: target, in: "Corpus") + inputs(of: target, in: "Found")
    }

    private static func inputs(of target: FuzzTarget, in subfolder: String) throws -> [(name: String, bytes: [UInt8])] {
        let directory = folder.appending(path: "\(subfolder)/\(target.name)")
        guard FileManager.default.fileExists(atPath: directory.path) else { return [] }
        return try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
            .sorted { $0.path < $1.path }
            .map { ($0.lastPathComponent, try [UInt8](Data(contentsOf: $0))) }
    }

    /// The lines of a dictionary, not decoded. `dictionary.txt` gets the protocol's verbs and options from the code.
    static func lines(of dictionary: String) throws -> [String] {
        let lines = try String(contentsOf: folder.appending(path: dictionary), encoding: .utf8).split(separator: "\n")
        return lines.map(String.init) + (dictionary == "dictionary.txt" ? FuzzTarget.dictionaryOfVerbs : [])
    }

    /// The words of a dictionary, which has them in quotes, with bytes written `\xHH`.
    static func words(of dictionary: String) throws -> [[UInt8]] {
        try lines(of: dictionary).filter { $0.hasPrefix("\"") }.map { line in
            var bytes: [UInt8] = []
            var rest = Array(line.utf8.dropFirst().dropLast())[...]
            while let byte = rest.popFirst() {
                guard byte == UInt8(ascii: "\\"), let next = rest.popFirst() else {
                    bytes.append(byte)
                    continue
                }
                guard next == UInt8(ascii: "x") else {
                    bytes.append(next)
                    continue
                }
                bytes += UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16).map { [$0] } ?? []
                rest = rest.dropFirst(2)
            }
            return bytes
        }
    }
}
