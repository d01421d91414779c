/// An input read as decisions, a byte or a few each. At its end all that is left to decide is 0, so that every input
/// means something, and one byte more or less changes little of it: that is what a mutation should do.
struct Decisions {
    private var rest: ArraySlice<UInt8>

    init(_ input: [UInt8]) {
        rest = input[...]
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// All that is not decided yet.
    var remainder: [UInt8] { Array(rest) }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    mutating func flag() -> Bool { byte() & 1 == 1 }

    mutating func below(_ bound: Int) -> Int { Int(byte()) % bound }

    mutating func one<Value>(of values: [Value]) -> Value { values[below(values.count)] }

    /// 0 to 2³² − 1; most are small.
    mutating func number() -> Int {
        let first = Int(byte())
        guard first > 0xFB else { return first }
        return (0..<(first - 0xFB)).reduce(0) { number, _ in number << 8 | Int(byte()) }
    }

    /// So many bytes as the next one says, as text: what is no UTF-8 becomes U+FFFD.
    mutating func text() -> String {
        let bytes = rest.prefix(Int(byte()))
        rest = rest.dropFirst(bytes.count)
        return String(decoding: bytes, as: UTF8.self)
    }

    mutating func optional<Value>(_ value: (inout Decisions) -> Value) -> Value? {
        flag() ? value(&self) : nil
    }
}
