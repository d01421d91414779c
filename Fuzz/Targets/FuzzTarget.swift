import LineProtocol

/// A part of the service that decodes bytes from outside, with the properties that it must have for any bytes.
public struct FuzzTarget: Sendable {
    public let name: String
    /// Passes the input to the target, and throws when a property does not hold.
    public let check: @Sendable ([UInt8]) throws(Violation) -> Void

    /// The size of the largest input: a request has 1,024 bytes, a stream several requests, and billing inputs two or
    /// three events.
    public var bytesMaximum = 2_048
    /// The file with words for inputs.
    public var dictionary = "dictionary.txt"

    /// Each with its name first, because script/fuzz reads them here.
    public static let all = [
        FuzzTarget(name: "decoding", check: DecodingTarget.check, bytesMaximum: 512),
        FuzzTarget(name: "framing", check: FramingTarget.check),
        FuzzTarget(name: "commands", check: CommandTarget.check, bytesMaximum: 1_400),
        FuzzTarget(name: "names", check: NameTarget.check, bytesMaximum: 300),
        FuzzTarget(name: "replies", check: ReplyTarget.check, bytesMaximum: 1_024),
        FuzzTarget(name: "reading", check: ReadingTarget.check),
        FuzzTarget(name: "connection", check: ConnectionTarget.check, bytesMaximum: 512),
        FuzzTarget(
            name: "json",
            check: JSONTarget.check,
            bytesMaximum: 1_024,
            dictionary: "dictionary-billing.txt"
        ),
        FuzzTarget(
            name: "billing",
            check: BillingTarget.check,
            bytesMaximum: 3_072,
            dictionary: "dictionary-billing.txt"
        ),
    ]

    /// The verbs and options, as lines of a libFuzzer dictionary.
    public static let dictionaryOfVerbs =
        (Verb.allCases.map(\.rawValue) + OptionName.allCases.map { "\($0.rawValue)=" }).map { "\"\($0)\"" }
}

/// A property that did not hold.
public struct Violation: Error, CustomStringConvertible {
    public let description: String
}

func require(_ condition: Bool, _ description: @autoclosure () -> String) throws(Violation) {
    if !condition { throw Violation(description: description()) }
}

func requireEqual<Value: Equatable>(
    _ found: Value,
    _ expected: Value,
    _ what: @autoclosure () -> String
) throws(Violation) {
    try require(found == expected, "\(what()): \(found) instead of \(expected)")
}
