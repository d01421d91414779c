/// The name of a language by BCP 47: `de`, `pt-BR`. Case means nothing, so it is spelled as in RFC 5646, 2.1.1.
public struct LanguageTag: Sendable, Hashable {
    public let text: String

    /// The longest tag that RFC 5646, 4.4.1, requires programs to accept.
    public static let lengthMaximum = 35

    /// The form of a tag, for error texts.
    public static let form = "a language tag such as en or pt-BR, of at most 35 characters"

    /// Parses a tag. It is nil if the text does not have the form of one: a language of two to eight letters, then
    /// subtags of at most eight letters and digits. Whether such a language exists is not checked.
    public init?(_ text: some StringProtocol) {
        guard text.utf8.count <= LanguageTag.lengthMaximum, !text.isEmpty else { return nil }
        var tag = ""
        var isFirst = true
        var followsSingleton = false
        for subtag in text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false) {
            let length = subtag.count
            let areLetters = subtag.allSatisfy { LanguageTag.isLetter($0) }
            let isValid =
                isFirst
                ? areLetters && (2...8).contains(length)
                : (1...8).contains(length) && subtag.allSatisfy { LanguageTag.isLetter($0) || LanguageTag.isDigit($0) }
            guard isValid else { return nil }
            let word = String(decoding: subtag, as: UTF8.self).lowercased()
            if isFirst {
                tag = word
            } else if length == 2, !followsSingleton {
                tag += "-" + word.uppercased()
            } else if length == 4, areLetters, !followsSingleton {
                tag += "-" + word.prefix(1).uppercased() + word.dropFirst()
            } else {
                tag += "-" + word
            }
            // A subtag after an extension's letter is no region and no script.
            followsSingleton = followsSingleton || length == 1
            isFirst = false
        }
        self.text = tag
    }

    private init(known text: String) {
        self.text = text
    }

    public static let english = LanguageTag(known: "en")

    /// The language without its last subtag, as RFC 4647, 3.4, looks languages up; nil for one without subtags.
    var parent: LanguageTag? {
        var subtags = text.split(separator: "-").dropLast()
        // An extension's letter means nothing alone.
        if subtags.count > 1, subtags.last?.count == 1 { subtags = subtags.dropLast() }
        return subtags.isEmpty ? nil : LanguageTag(known: subtags.joined(separator: "-"))
    }

    /// The tag, and the languages that are looked up instead, in this order.
    var lookup: [LanguageTag] {
        var tags = [self]
        while let parent = tags.last?.parent { tags.append(parent) }
        return tags
    }

    /// The language without subtags: `pt` of `pt-BR`.
    var primary: String { String(text.prefix { $0 != "-" }) }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}

extension LanguageTag: CustomStringConvertible {
    public var description: String { text }
}
