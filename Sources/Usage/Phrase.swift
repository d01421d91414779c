/// A sentence for a user, and the values for its blanks.
///
/// An answer has phrases. Only `text(in:)` fills the values in.
public struct Phrase: Sendable, Equatable {
    public struct Values: Sendable, Equatable {
        /// The allowance whose messages are used, allowed and left.
        public var allowance = Allowance(used: 0, limit: nil)
        public var date: RelativeDate?
        /// The day of a trial, from 1.
        public var day: Int?
        /// The number of days of the trial.
        public var days: Int?
        /// The time until messages come back.
        public var waitSeconds: Int64?
        /// The number of messages that were refused because fewer are left.
        public var requested: Int?
        /// The entitlement whose plan and period are named; nil for sentences that name neither.
        public var entitlement: Entitlement?
        /// The name of the model that the sentence is about; nil for one about the plan.
        public var modelLabel: String?
        /// The name of the model to offer instead of a refused one, and the sentence about the refusal before it.
        public var fallback: String?
        public var banner: String?

        public init() {}
    }

    public var sentence: Sentence
    public var values: Values

    public init(_ sentence: Sentence, _ values: Values = Values()) {
        self.sentence = sentence
        self.values = values
    }

    public func text(in vocabulary: Vocabulary) -> String {
        TextWriter.text { vocabulary.append(sentence, values, to: &$0) }
    }

    /// The text in English as it is shipped.
    public var text: String { text(in: Words.shipped.standard) }
}

/// Writes a text as UTF-8 into memory, which takes half the instructions of appending to a `String`.
struct TextWriter {
    private let memory: UnsafeMutableBufferPointer<UInt8>
    /// The number of bytes of the text, including those that do not fit.
    private(set) var count = 0

    fileprivate init(_ memory: UnsafeMutableBufferPointer<UInt8>) {
        self.memory = memory
    }

    mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            if count + bytes.count <= memory.count {
                UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(memory)[count...])
                    .copyMemory(from: UnsafeRawBufferPointer(bytes))
            }
            count += bytes.count
        }
    }

    mutating func append(_ number: Int) {
        guard (0..<100).contains(number) else { return append(String(number)) }
        if number >= 10 { append(digit: number / 10) }
        append(digit: number % 10)
    }

    private mutating func append(digit: Int) {
        if count < memory.count { memory[count] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit) }
        count += 1
    }

    /// - Parameter capacityBytes: the size of the buffer. It is nearly always enough; a longer text is written twice.
    static func text(capacityBytes: Int = 160, _ write: (inout TextWriter) -> Void) -> String {
        var missing = 0
        let text = String(unsafeUninitializedCapacity: capacityBytes) { memory in
            var writer = TextWriter(memory)
            write(&writer)
            missing = max(0, writer.count - memory.count)
            return missing == 0 ? writer.count : 0
        }
        return missing == 0 ? text : TextWriter.text(capacityBytes: capacityBytes + missing, write)
    }
}
