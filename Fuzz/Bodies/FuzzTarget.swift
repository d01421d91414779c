/// A part of the service that reads bytes from outside, and what must hold of it whatever they are.
public struct FuzzTarget: Sendable {
    public let name: String
    /// Does with the input what the target does with it, and throws where it did wrong. A trap is wrong anywhere.
    public let check: @Sendable ([UInt8]) throws(Violation) -> Void

    /// The most bytes of an input that a test makes.
    public var bytesMaximum = 2_048
    /// Of the words that inputs are made of.
    public var dictionary = "dictionary.txt"

    public static let all = [
        FuzzTarget(name: "decoding", check: DecodingBody.check),
        FuzzTarget(name: "framing", check: FramingBody.check),
        FuzzTarget(name: "commands", check: CommandBody.check),
        FuzzTarget(name: "replies", check: ReplyBody.check),
        FuzzTarget(name: "reading", check: ReadingBody.check),
        FuzzTarget(name: "connection", check: ConnectionBody.check),
        FuzzTarget(name: "json", check: JSONBody.check, dictionary: "dictionary-billing.txt"),
        FuzzTarget(
            name: "billing",
            check: BillingBody.check,
            bytesMaximum: 3_072,
            dictionary: "dictionary-billing.txt"
        ),
    ]
}

/// What did not hold.
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
