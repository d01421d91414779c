import HTTPTypes
import Hummingbird
import LineProtocol
import Usage

/// The query of a request. As in the line protocol, unknown and repeated parameters are errors.
struct QueryParameters {
    private let values: [String: String]

    /// - Throws: 400 for a parameter that is unknown or repeated.
    init(_ request: Request, allowing names: String...) throws(Problem) {
        var values: [String: String] = [:]
        // Nearly no request has a query.
        for pair in (request.uri.query ?? "").utf8.split(separator: UInt8(ascii: "&")) {
            let halves = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentDecoding.text(halves[0]), names.contains(name) else {
                let known = names.isEmpty ? "none" : names.joined(separator: ", ")
                throw .badArgument("unknown parameter; this path takes \(known)")
            }
            guard let value = PercentDecoding.text(halves.count == 2 ? halves[1] : pair.suffix(0)) else {
                throw .badArgument("the parameter \(name) must be percent-encoded UTF-8")
            }
            guard values.updateValue(value, forKey: name) == nil else {
                throw .badArgument("the parameter \(name) is given twice; give it once")
            }
        }
        self.values = values
    }

    func period() throws(Problem) -> BillingPeriod? {
        guard let text = values["period"] else { return nil }
        return try QueryParameters.period(text)
    }

    /// `lang` and `tz`.
    func sentences() throws(Problem) -> SentenceOptions {
        var options = SentenceOptions()
        if let text = values["lang"] {
            options.language = LanguageTag(text)
            if options.language == nil { throw .badArgument("lang must be \(LanguageTag.form)") }
        }
        if let text = values["tz"] {
            options.timeZone = CivilTimeZone(text)
            if options.timeZone == nil { throw .badArgument("tz must be \(CivilTimeZone.form)") }
        }
        return options
    }

    /// `model` and `member`.
    ///
    /// - Parameter namespace: of users' names; nil where users are UUIDs only.
    func parts(in namespace: UserNamespace?) throws(Problem) -> MessageParts? {
        let model = values["model"].map { ModelName($0) }
        if case .some(nil) = model { throw .badArgument("model must be \(ModelName.form)") }
        let member = values["member"].map { UserID($0, in: namespace) }
        if case .some(nil) = member { throw .badArgument(UserNamespace.rule(namespace, of: "member")) }
        return MessageParts(model: model ?? nil, member: member ?? nil)
    }

    static func period(_ text: String) throws(Problem) -> BillingPeriod {
        guard let period = BillingPeriod(text) else {
            throw .badArgument("period must be \(BillingPeriod.forms)")
        }
        return period
    }

    /// - Parameter standard: used if the parameter is missing.
    func number(_ name: String, in range: ClosedRange<Int>, default standard: Int) throws(Problem) -> Int {
        guard let text = values[name] else { return standard }
        let isPlain = !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isPlain, text == "0" || text.first != "0", let number = Int(text), range.contains(number) else {
            throw .badArgument("\(name) must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}

extension HTTPContext {
    /// The path's value for `{name}`, percent-decoded; nil for one that is malformed.
    func pathParameter(_ name: String) -> String? {
        parameters.get(name).flatMap { PercentDecoding.text($0.utf8) }
    }

    /// The user in the path.
    ///
    /// - Parameter namespace: of users' names; nil where users are UUIDs only.
    func user(in namespace: UserNamespace?) throws(Problem) -> UserID {
        guard let user = pathUser(in: namespace) else { throw .badArgument(UserNamespace.rule(namespace)) }
        return user
    }

    /// The user in the path, for pages; nil for a text that is none.
    func pathUser(in namespace: UserNamespace?) -> UserID? {
        parameters.get("user").flatMap { UserID(percentEncoded: $0, in: namespace) }
    }
}

extension Problem {
    static func badArgument(_ detail: String) -> Problem { Problem(ReplyError(code: .badArg, text: detail)) }
}
