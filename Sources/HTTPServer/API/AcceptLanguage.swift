import HTTPTypes
import Hummingbird
import Usage

/// The languages that a request prefers: the header field Accept-Language (RFC 9110, 12.5.4).
struct AcceptLanguage: Equatable {
    /// Most preferred first; nil is `*`, any language.
    let ranges: [LanguageTag?]

    /// - Parameter field: malformed parts are ignored, because browsers' users cannot change them.
    init(_ field: String) {
        var weighted: [(range: LanguageTag?, quality: Double)] = []
        for part in field.split(separator: ",").prefix(AcceptLanguage.rangesMaximum) {
            let parameters = part.split(separator: ";").map { $0.trimming { $0 == " " || $0 == "\t" } }
            guard let range = parameters.first, let quality = AcceptLanguage.quality(parameters.dropFirst()) else {
                continue
            }
            if range == "*" {
                weighted.append((nil, quality))
            } else if let tag = LanguageTag(range) {
                weighted.append((tag, quality))
            }
        }
        // Equal ones keep their order; 0 is "not acceptable".
        ranges = weighted.enumerated().filter { $0.element.quality > 0 }.sorted {
            ($1.element.quality, $0.offset) < ($0.element.quality, $1.offset)
        }.map(\.element.range)
    }

    /// More than a browser sends; the others are not read.
    private static let rangesMaximum = 64

    /// 1 without a parameter; nil for one that is malformed.
    private static func quality(_ parameters: ArraySlice<Substring>) -> Double? {
        guard let parameter = parameters.first else { return 1 }
        guard parameters.count == 1, let match = parameter.wholeMatch(of: /[qQ]=([01](?:\.[0-9]{0,3})?)/),
            let quality = Double(match.1.hasSuffix(".") ? match.1.dropLast() : match.1), quality <= 1
        else { return nil }
        return quality
    }
}

extension StringProtocol {
    fileprivate func trimming(_ isTrimmed: (Character) -> Bool) -> SubSequence {
        let rest = drop(while: isTrimmed)
        return rest.lastIndex { !isTrimmed($0) }.map { rest[...$0] } ?? rest[..<rest.startIndex]
    }
}

extension Words {
    /// The words for a request: of the language that it names, else of the first one that it accepts and that has rows,
    /// else the standard ones. Dates are in the time zone that it names.
    func vocabulary(for request: Request, named options: SentenceOptions?) -> Vocabulary {
        let words = options?.language.map { vocabulary(for: $0) } ?? accepted(by: request)
        return words.with(timeZone: options?.timeZone)
    }

    private func accepted(by request: Request) -> Vocabulary {
        let fields = request.headers[values: .acceptLanguage]
        guard !fields.isEmpty else { return standard }
        for range in AcceptLanguage(fields.joined(separator: ",")).ranges {
            guard let range else { return standard }
            if let vocabulary = available(range) { return vocabulary }
        }
        return standard
    }
}

extension Vocabulary {
    /// Says which language the body has, and to caches that another request may get another one.
    func writeFields(to headers: inout HTTPFields) {
        headers[.contentLanguage] = language.text
        headers[.vary] = "Accept-Language"
    }

    func writeFields(to response: inout Response) {
        writeFields(to: &response.headers)
        // A response without a body describes none.
        if response.status != .ok { response.headers[.contentLanguage] = nil }
    }
}
