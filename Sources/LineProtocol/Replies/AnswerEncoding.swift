import NIOCore
import Usage

extension Answer {
    /// The most bytes of the fields without their texts: their names, and the values that are not texts. The hundred
    /// bytes more let a new buffer begin with 2,048 bytes, in which several answers fit.
    private static let fixedBytesMaximum =
        128 + bytesMaximum(AnswerField.allCases.filter { !fieldsOfParts.contains($0) })
    /// The same of the fields that only a request with parts has, and the names of two models.
    private static let bytesMaximumOfParts = bytesMaximum(fieldsOfParts) + 2 * ModelName.lengthBytes.upperBound
    private static let fieldsOfParts: Set<AnswerField> = [
        .model, .modelLimit, .modelUsed, .modelRemaining, .modelResets, .member, .memberLimit, .memberUsed,
        .memberRemaining, .fallback,
    ]

    private static func bytesMaximum(_ fields: some Sequence<AnswerField>) -> Int {
        fields.reduce(0) { $0 + $1.lineName.utf8CodeUnitCount + LineWriter.bytesMaximum($1.kind) }
    }

    /// Writes the line. The fields have a fixed order, so that lines can be compared as text. A field that does not
    /// apply is absent.
    ///
    /// - Parameter vocabulary: the vocabulary of the request's language and time zone.
    public func encode(into buffer: inout ByteBuffer, in vocabulary: Vocabulary = Words.shipped.standard) {
        let texts = texts(in: vocabulary)
        buffer.writeLine(capacityBytes: Answer.fixedBytesMaximum + bytesMaximum(texts)) { line in
            switch status {
            case .allowed: line.putLiteral("+ALLOWED")
            case .blocked: line.putLiteral("+BLOCKED")
            case .held: line.putLiteral("+HELD")
            case .ok: line.putLiteral("+OK")
            }
            writeFields(texts, to: &line)
        }
    }

    /// The most bytes that the texts of the line take. A test encodes the longest answer: a text that is missing here
    /// ends the program.
    private func bytesMaximum(_ texts: AnswerTexts) -> Int {
        let bytes =
            (snapshot.parts.isEmpty ? 0 : Answer.bytesMaximumOfParts) + LineWriter.valueBytesMaximum(snapshot.plan.name)
            + LineWriter.valueBytesMaximum(snapshot.period.label)
            + LineWriter.valueBytesMaximum(snapshot.previousPlan) + LineWriter.valueBytesMaximum(texts.notice)
            + LineWriter.valueBytesMaximum(texts.banner)
        guard let shown = texts.details else { return bytes }
        return [
            nextPlan, shown.label, shown.stateLabel, shown.accessible, details?.price, details?.currency,
            details?.manage, shown.steps,
        ].reduce(bytes) { $0 + LineWriter.valueBytesMaximum($1) }
    }
}

extension LineWriter: AnswerFieldWriter {
    static var isComplete: Bool { false }

    @inline(__always)
    mutating func putName(_ lineName: StaticString) { putLiteral(lineName) }

    @inline(__always)
    mutating func putUnlimited() { putLiteral("unlimited") }

    @inline(__always)
    mutating func putFlag() { putLiteral("1") }

    @inline(__always)
    mutating func putText(_ text: String) { putValue(text) }

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
            line.putWord(tier.rawValue)
        }
    }
}

extension ReportedAllowance {
    /// Writes `+ALLOWANCE …`.
    func encode(in period: BillingPeriod, into buffer: inout ByteBuffer) {
        let capacity = [period.label, name, label, fallback].reduce(512) { $0 + LineWriter.valueBytesMaximum($1) }
        buffer.writeLine(capacityBytes: capacity) { line in
            line.putLiteral("+ALLOWANCE")
            line.putField(" period=", period.label)
            writeFields(to: &line)
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
                line.putWord(tier.rawValue)
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
