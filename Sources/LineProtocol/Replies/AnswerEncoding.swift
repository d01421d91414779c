import NIOCore
import Usage

extension Answer {
    /// The most bytes of the fields without their texts: their names, and the values that are not texts.
    private static let fixedBytesMaximum = AnswerField.allCases.reduce(16) { bytes, field in
        bytes + field.lineName.utf8CodeUnitCount + LineWriter.bytesMaximum(field.kind)
    }

    /// Writes the line. The fields have a fixed order, so that lines can be compared as text. A field that does not
    /// apply is absent.
    ///
    /// - Parameter vocabulary: the vocabulary of the request's language and time zone.
    public func encode(into buffer: inout ByteBuffer, in vocabulary: Vocabulary = Words.shipped.standard) {
        let texts = AnswerTexts(self, in: vocabulary)
        var capacity = TextCapacity()
        writeFields(texts, to: &capacity)
        buffer.writeLine(capacityBytes: Answer.fixedBytesMaximum + capacity.bytes) { line in
            switch status {
            case .allowed: line.putLiteral("+ALLOWED")
            case .blocked: line.putLiteral("+BLOCKED")
            case .held: line.putLiteral("+HELD")
            case .ok: line.putLiteral("+OK")
            }
            writeFields(texts, to: &line)
        }
    }
}

/// Adds up how many bytes the texts of an answer may take.
private struct TextCapacity: AnswerFieldWriter {
    var bytes = 0

    @inline(__always)
    mutating func write(_ field: AnswerField, _ value: AnswerValue) {
        if case .text(let text) = value { bytes += LineWriter.valueBytesMaximum(text) }
    }
}

extension LineWriter: AnswerFieldWriter {
    /// It is inlined, so that nothing is left of the value's case, which each call has as a constant.
    @inline(__always)
    mutating func write(_ field: AnswerField, _ value: AnswerValue) {
        // A line has the field only if messages are held.
        if field == .held, case .number(0) = value { return }
        putLiteral(field.lineName)
        switch value {
        case .user(let user): put(user)
        case .name(let name): putName(name)
        case .number(let number), .limit(let number?): put(number)
        case .limit(nil): putLiteral("unlimited")
        case .instant(let instant): put(instant)
        case .writtenInstant(let instant): put(instant)
        case .flag: putLiteral("1")
        case .text(let text): putValue(text)
        }
    }

    /// The most bytes that a value of this kind takes; 0 for a text, whose length is not known.
    fileprivate static func bytesMaximum(_ kind: AnswerField.Kind) -> Int {
        switch kind {
        case .user: UserID.textLength
        case .name: 32
        case .number, .limit: integerBytesMaximum
        case .instant: WrittenInstant.bytesMaximum
        case .flag: 1
        case .text: 0
        }
    }
}

extension PeriodUsage {
    /// Writes `+PERIOD …`.
    func encode(into buffer: inout ByteBuffer) {
        buffer.writeLine(capacityBytes: 256 + LineWriter.valueBytesMaximum(period.label)) { line in
            line.putLiteral("+PERIOD user=")
            line.put(user)
            line.putField(" period=", period.label)
            line.putLiteral(" used=")
            line.put(used)
            line.putLimit(" limit=", limit)
            line.putLiteral(" tier=")
            line.putName(tier.rawValue)
        }
    }
}

extension PeriodReport {
    /// Writes `+REPORT …`.
    func encode(into buffer: inout ByteBuffer) {
        let capacity = 256 + LineWriter.valueBytesMaximum(period.label)
        buffer.writeLine(capacityBytes: capacity) { line in
            line.putLiteral("+REPORT")
            line.putField(" period=", period.label)
            line.putLiteral(" users=")
            line.put(users)
            line.putLiteral(" messages=")
            line.put(messages)
            for tier in Tier.allCases {
                line.putLiteral(" ")
                line.putName(tier.rawValue)
                line.putLiteral("=")
                line.put(users(in: tier))
            }
        }
    }
}

extension LineWriter {
    /// - Parameter name: the field's name with the space before it and the equals sign after it.
    @inline(__always)
    fileprivate mutating func putField(_ name: StaticString, _ value: String) {
        putLiteral(name)
        putValue(value)
    }

    @inline(__always)
    fileprivate mutating func putLimit(_ name: StaticString, _ limit: Int?) {
        putLiteral(name)
        if let limit {
            put(limit)
        } else {
            putLiteral("unlimited")
        }
    }
}
