import HTTPTypes

extension Problem {
    /// The heading of the page that shows it.
    var heading: String {
        switch status {
        case .notFound: "Page not found"
        case .forbidden: "Not allowed"
        case .unauthorized: "Sign in first"
        case .serviceUnavailable: "Temporarily unavailable"
        case .misdirectedRequest: "Unknown host name"
        default: status.code < 500 ? "The request was not accepted" : "Internal error"
        }
    }

    var advice: String {
        switch status {
        case .notFound: "The link may be incomplete. The overview leads to all pages."
        case .forbidden: "Nothing was changed."
        case .serviceUnavailable: "Try again in a moment."
        default: status.code < 500 ? "Nothing was changed." : "The service’s log says more."
        }
    }

    static let unknownPeriod = Problem(
        .notFound,
        code: "NOTFOUND",
        "there is no such billing period; a period is a month, such as 2026-11, or a plan that never resets, such as "
            + "trial"
    )
}

extension String {
    /// With a capital letter and a full stop, which the protocol's texts lack.
    var sentence: String {
        guard let first else { return self }
        let text = first.uppercased() + dropFirst()
        return text.hasSuffix(".") ? text : text + "."
    }

    /// For a text of an operator within a sentence or an option, where no element can isolate it: one that is written
    /// from right to left does not reorder what surrounds it.
    var isolated: String { utf8.allSatisfy { $0 < 0x80 } ? self : "\u{2068}\(self)\u{2069}" }

    /// A name of the protocol as words.
    var spaced: String { String(map { $0 == "_" ? " " : $0 }) }
}
