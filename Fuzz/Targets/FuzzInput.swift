/// Reads values from a fuzzer's input, as libFuzzer's FuzzedDataProvider does. A number or a choice takes one or a few
/// bytes, so that a small mutation changes few values. Every byte after the end is 0, so that every input is valid.
struct FuzzInput {
    private var rest: ArraySlice<UInt8>

    init(_ input: [UInt8]) {
        rest = input[...]
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// The bytes that are not used yet.
    var remainder: [UInt8] { Array(rest) }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    mutating func flag() -> Bool { byte() & 1 == 1 }

    /// 0 to `bound` − 1. Reads one byte, so the result is at most 255.
    mutating func below(_ bound: Int) -> Int { Int(byte()) % bound }

    mutating func one<Value>(of values: [Value]) -> Value { values[below(values.count)] }

    /// 0 to 2³² − 1; most are small.
    mutating func number() -> Int {
        let first = Int(byte())
        guard first > 0xFB else { return first }
        return (0..<(first - 0xFB)).reduce(0) { number, _ in number << 8 | Int(byte()) }
    }

    /// A text whose length in bytes is the next byte; invalid UTF-8 becomes U+FFFD.
    mutating func text() -> String {
        let count = Int(byte())
        let bytes = rest.prefix(count)
        rest = rest.dropFirst(bytes.count)
        return String(decoding: bytes, as: UTF8.self)
    }

    mutating func optional<Value>(_ value: (inout FuzzInput) -> Value) -> Value? {
        flag() ? value(&self) : nil
    }
}
