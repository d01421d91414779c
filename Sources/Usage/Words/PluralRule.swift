/// Which of a word's forms goes with a number: the categories of CLDR that have a column in `headroom.words`.
enum PluralCategory: String, CaseIterable, Sendable {
    case one, few, many, other
}

/// The rule of a language for whole numbers.
///
/// A language with two forms has `one` for exactly 1, whatever else CLDR says of it. A language with more has CLDR's
/// categories; numbers of CLDR's `zero` and `two` have `other` here.
enum PluralRule: Sendable, CaseIterable {
    case exactlyOne
    case arabic, czech, eastSlavic, irish, latvian, lithuanian, maltese, polish, romanian, slovenian, southSlavic, welsh

    init(_ language: LanguageTag) {
        self =
            switch language.primary {
            case "ar": .arabic
            case "cs", "sk": .czech
            case "be", "ru", "uk": .eastSlavic
            case "ga": .irish
            case "lv": .latvian
            case "lt": .lithuanian
            case "mt": .maltese
            case "pl": .polish
            case "mo", "ro": .romanian
            case "dsb", "hsb", "sl": .slovenian
            case "bs", "hr", "sh", "sr": .southSlavic
            case "cy": .welsh
            default: .exactlyOne
            }
    }

    /// - Parameter number: nil if the value is not known, or without limit.
    func category(of number: Int?) -> PluralCategory {
        guard let number, number >= 0 else { return .other }
        let (tens, hundreds) = (number % 10, number % 100)
        let isTeen = (11...19).contains(hundreds)
        switch self {
        case .exactlyOne: return number == 1 ? .one : .other
        case .arabic:
            return number == 1
                ? .one : (3...10).contains(hundreds) ? .few : (11...99).contains(hundreds) ? .many : .other
        case .czech: return number == 1 ? .one : (2...4).contains(number) ? .few : .other
        case .eastSlavic:
            return tens == 1 && hundreds != 11
                ? .one : (2...4).contains(tens) && !(12...14).contains(hundreds) ? .few : .many
        case .irish:
            return number == 1 ? .one : (3...6).contains(number) ? .few : (7...10).contains(number) ? .many : .other
        case .latvian: return tens == 1 && hundreds != 11 ? .one : .other
        case .lithuanian: return isTeen ? .other : tens == 1 ? .one : (2...9).contains(tens) ? .few : .other
        case .maltese:
            return number == 1
                ? .one
                : number == 0 || (3...10).contains(hundreds) ? .few : (11...19).contains(hundreds) ? .many : .other
        case .polish:
            return number == 1
                ? .one : (2...4).contains(tens) && !(12...14).contains(hundreds) ? .few : .many
        case .romanian:
            return number == 1 ? .one : number == 0 || (1...19).contains(hundreds) ? .few : .other
        case .slovenian: return hundreds == 1 ? .one : (3...4).contains(hundreds) ? .few : .other
        case .southSlavic:
            return tens == 1 && hundreds != 11
                ? .one : (2...4).contains(tens) && !(12...14).contains(hundreds) ? .few : .other
        case .welsh: return number == 1 ? .one : number == 3 ? .few : number == 6 ? .many : .other
        }
    }
}
