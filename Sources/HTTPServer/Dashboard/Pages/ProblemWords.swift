import HTTPTypes

extension Problem {
    /// Of the page that shows it.
    var heading: String {
        switch status {
        case .notFound: "There is no such page"
        case .forbidden: "That is not allowed"
        case .unauthorized: "Sign in first"
        case .serviceUnavailable: "Not at the moment"
        case .misdirectedRequest: "Not under this name"
        default: status.code < 500 ? "That did not work" : "Something went wrong here"
        }
    }

    var advice: String {
        switch status {
        case .notFound: "Perhaps a link was cut off. The overview leads to everything."
        case .forbidden: "Nothing was changed."
        case .serviceUnavailable: "Try again in a while."
        default: status.code < 500 ? "Nothing was changed." : "The service’s log says more."
        }
    }
}

extension String {
    /// With a capital and a full stop: the protocol's texts have neither.
    var sentence: String {
        guard let first else { return self }
        let text = first.uppercased() + dropFirst()
        return text.hasSuffix(".") ? text : text + "."
    }
}

extension Problem {
    static let noPeriod = Problem(
        .notFound,
        code: "NOTFOUND",
        "there is no such billing period; a period is a month, such as 2026-11, or a plan that never resets, such as trial"
    )
}

extension FindPage {
    static let noUser = "That is no user’s id. It is a UUID: 8-4-4-4-12 hexadecimal digits with dashes between."
}
