import Testing

@testable import Usage

private func tag(_ text: String) -> LanguageTag {
    guard let tag = LanguageTag(text) else { preconditionFailure("\(text) is no tag") }
    return tag
}

@Suite("A language tag")
struct LanguageTagTests {
    @Test(
        "is spelled as RFC 5646 does, whatever the case",
        arguments: [
            ("de", "de"), ("DE", "de"), ("pt-br", "pt-BR"), ("PT-BR", "pt-BR"), ("zh-hant-tw", "zh-Hant-TW"),
            ("sr-LATN", "sr-Latn"), ("es-419", "es-419"), ("de-ch-1901", "de-CH-1901"),
            ("sl-rozaj-biske", "sl-rozaj-biske"),
            ("en-a-BB-cccc", "en-a-bb-cccc"), ("en-X-US", "en-x-us"), ("gsw-u-SD-chzh", "gsw-u-sd-chzh"),
        ]
    )
    func canonical(text: String, canonical: String) {
        #expect(LanguageTag(text)?.text == canonical)
        #expect(LanguageTag(canonical)?.text == canonical)
    }

    @Test(
        "has the form of BCP 47 and at most 35 characters",
        arguments: [
            "", "d", "-", "de-", "-de", "de--CH", "de_DE", "d3", "deutschland", "de-abcdefghi", "de CH", "dé", "de\n",
            "*",
            "de-abcdefgh-abcdefgh-abcdefgh-abcdef", "x-private",
        ]
    )
    func malformed(text: String) { #expect(LanguageTag(text) == nil) }

    @Test("is looked up without its last subtags")
    func lookup() {
        #expect(tag("pt-BR").lookup.map(\.text) == ["pt-BR", "pt"])
        #expect(tag("zh-Hant-TW").lookup.map(\.text) == ["zh-Hant-TW", "zh-Hant", "zh"])
        #expect(tag("zh-Hant-x-app").lookup.map(\.text) == ["zh-Hant-x-app", "zh-Hant", "zh"])
        #expect(tag("de").lookup.map(\.text) == ["de"])
    }
}

@Suite("Plural rules")
struct PluralRuleTests {
    private func forms(_ language: String, _ numbers: [Int]) -> [String] {
        numbers.map { PluralRule(tag(language)).category(of: $0).rawValue }
    }

    @Test(
        "have one for exactly 1 in languages with two forms",
        arguments: ["en", "de", "es", "fr", "pt-BR", "ja", "it", "xx"]
    )
    func exactlyOne(language: String) {
        #expect(forms(language, [1]) == ["one"])
        #expect(Set(forms(language, [0, 2, 11, 21, 101, 1_000_000])) == ["other"])
    }

    @Test("are those of CLDR in languages with more")
    func categories() {
        let numbers = [0, 1, 2, 4, 5, 11, 12, 14, 21, 22, 25, 101, 102, 111, 112, 122]
        #expect(
            forms("pl", numbers) == [
                "many", "one", "few", "few", "many", "many", "many", "many", "many", "few", "many", "many", "few",
                "many",
                "many", "few",
            ]
        )
        #expect(
            forms("ru", numbers) == [
                "many", "one", "few", "few", "many", "many", "many", "many", "one", "few", "many", "one", "few", "many",
                "many", "few",
            ]
        )
        #expect(forms("hr", [0, 1, 3, 5, 21, 111]) == ["other", "one", "few", "other", "one", "other"])
        #expect(forms("cs", [0, 1, 2, 4, 5, 22]) == ["other", "one", "few", "few", "other", "other"])
        #expect(forms("lt", [0, 1, 9, 10, 11, 21, 22]) == ["other", "one", "few", "other", "other", "one", "few"])
        #expect(forms("lv", [0, 1, 11, 21, 111]) == ["other", "one", "other", "one", "other"])
        #expect(forms("ro", [0, 1, 19, 20, 101, 119, 120]) == ["few", "one", "few", "other", "few", "few", "other"])
        #expect(forms("sl", [1, 2, 3, 4, 5, 101, 103]) == ["one", "other", "few", "few", "other", "one", "few"])
        #expect(
            forms("ar-EG", [0, 1, 2, 3, 10, 11, 99, 100, 103]) == [
                "other", "one", "other", "few", "few", "many", "many", "other", "few",
            ]
        )
        #expect(forms("mt", [0, 1, 2, 10, 11, 19, 20]) == ["few", "one", "other", "few", "many", "many", "other"])
        #expect(forms("ga", [1, 2, 3, 6, 7, 10, 11]) == ["one", "other", "few", "few", "many", "many", "other"])
        #expect(forms("cy", [0, 1, 2, 3, 6]) == ["other", "one", "other", "few", "many"])
    }

    @Test("have other where there is no number")
    func noNumber() {
        for rule in PluralRule.allCases { #expect(rule.category(of: nil) == .other) }
    }
}

@Suite("A wait")
struct WaitTests {
    @Test(
        "is said in its two largest units, rounded up to the minute",
        arguments: [
            (-5, "1 minute"), (0, "1 minute"), (1, "1 minute"), (60, "1 minute"), (61, "2 minutes"),
            (3_540, "59 minutes"), (3_541, "1 hour"), (3_600, "1 hour"), (3_601, "1 hour 1 minute"),
            (3_660, "1 hour 1 minute"), (7_741, "2 hours 10 minutes"), (7_800, "2 hours 10 minutes"),
            (86_340, "23 hours 59 minutes"), (86_341, "1 day"), (86_400, "1 day"), (86_460, "1 day"),
            (90_000, "1 day 1 hour"), (98_400, "1 day 3 hours"), (172_800, "2 days"), (200_000, "2 days 7 hours"),
            (2_678_400, "31 days"),
        ] as [(Int64, String)]
    )
    func text(seconds: Int64, text: String) {
        var values = Phrase.Values()
        values.waitSeconds = seconds
        #expect(Phrase(.blockedWindow, values).text == "Let's take a short break. I'm here for you again in \(text).")
    }
}

@Suite("Words")
struct VocabularyTests {
    private static let rows = [
        row("pt", .stateFree, "pt free"), row("pt", .stateActive, "pt active"), row("pt-BR", .stateFree, "br free"),
        row("de", .stateTrial, "de trial"), row("de", .stateFree, "de free"), row("en", .stateRefunded, "en refunded"),
    ]

    private static func row(_ language: String, _ sentence: Sentence, _ text: String) -> Words.Row {
        Words.Row(tag(language), sentence, WordForms(other: text))
    }

    private func text(_ sentence: Sentence, _ language: String?, standard: String = "en") -> String {
        let words = Words(VocabularyTests.rows, standard: tag(standard))
        return Phrase(sentence).text(in: words.vocabulary(for: language.map { tag($0) }))
    }

    @Test("fall back one by one: to the language without its subtags, the standard one, and English")
    func fallback() {
        #expect(text(.stateFree, "pt-BR") == "br free")
        #expect(text(.stateActive, "pt-BR") == "pt active")
        #expect(text(.stateTrial, "pt-BR", standard: "de") == "de trial")
        #expect(text(.stateTrial, "pt-BR") == "Trial")
        #expect(text(.stateRefunded, "pt-BR", standard: "de") == "en refunded")
        #expect(text(.stateExpired, "pt-BR", standard: "de") == "Expired")
        #expect(text(.stateFree, "pt-PT") == "pt free")
        #expect(text(.stateFree, "xx", standard: "de-AT") == "de free")
        #expect(text(.stateFree, nil, standard: "de-AT") == "de free")
        #expect(text(.stateFree, nil, standard: "xx") == "Free")
        #expect(Words([], standard: tag("xx")).standard.language == .english)
    }

    @Test("are looked up by their positions")
    func ordinals() { #expect(Sentence.allCases.map(\.ordinal) == Array(Sentence.allCases.indices)) }

    @Test("say which language each is in")
    func origin() {
        let words = Words(VocabularyTests.rows, standard: .english)
        let vocabulary = words.vocabulary(for: tag("pt-BR"))
        #expect(vocabulary.language.text == "pt-BR")
        #expect(vocabulary.language(of: .stateActive).text == "pt")
        #expect(vocabulary.language(of: .stateExpired) == .english)
        #expect(words.languages.map(\.text) == ["de", "en", "pt", "pt-BR"])
    }

    @Test(
        "with a template that the database would refuse fall back",
        arguments: ["{used", "used}", "{}", "{foo}", "{date}", "{{used}}", "{used}}"]
    )
    func invalid(template: String) {
        var rejected: [Words.Row] = []
        let row = Words.Row(tag("de"), .gentle, WordForms(other: template))
        let words = Words([row], standard: .english) { rejected.append($0) }
        #expect(rejected == [row])
        #expect(words.vocabulary(for: tag("de")).language(of: .gentle) == .english)
    }

    @Test("make texts of any length")
    func length() {
        var values = Phrase.Values()
        values.allowance = Allowance(used: 3, limit: 125)
        for length in Array(70...130) + [500] {
            let literal = String(repeating: "ö", count: length)
            let row = Words.Row(.english, .gentle, WordForms(other: "\(literal){used}{remaining}"))
            let words = Words([row], standard: .english)
            #expect(Phrase(.gentle, values).text(in: words.standard) == "\(literal)3122")
        }
    }

    @Test("choose the form of the language that has the template")
    func plural() {
        var values = Phrase.Values()
        values.allowance = Allowance(used: 3, limit: 25)
        let forms = WordForms(one: "one", few: "few {remaining}", other: "other {remaining}")
        let words = Words([Words.Row(tag("pl"), .gentle, forms)], standard: .english)
        let vocabulary = words.vocabulary(for: tag("pl"))
        #expect(Phrase(.gentle, values).text(in: vocabulary) == "few 22")
        // A missing form is other; a word in English has the forms of English.
        values.allowance = Allowance(used: 0, limit: 25)
        #expect(Phrase(.gentle, values).text(in: vocabulary) == "other 25")
        values.allowance = Allowance(used: 3, limit: nil)
        #expect(Phrase(.gentle, values).text(in: vocabulary) == "other unlimited")
        values.allowance = Allowance(used: 24, limit: 25)
        #expect(Phrase(.gentle, values).text(in: vocabulary) == "one")
        #expect(Phrase(.prominentUndated, values).text(in: vocabulary) == "Almost there — 1 message left")
    }
}

@Suite("Shipped words")
struct ShippedWordsTests {
    /// The language of each template.
    private static let templates = ShippedWords.files.flatMap { file in
        file.words.flatMap { sentence, forms in
            [forms.one, forms.few, forms.many, forms.other].compactMap(\.self).map { (file, sentence, $0) }
        }
    }

    @Test("are those of the files of languages, and fall back to more general ones only")
    func complete() {
        #expect(LanguageTag.shipped == ShippedWords.files.map(\.language) && LanguageTag.shipped.contains(.english))
        for language in LanguageTag.shipped {
            let vocabulary = Words.shipped.vocabulary(for: language)
            for sentence in Sentence.allCases {
                #expect(language.lookup.contains(vocabulary.language(of: sentence)), "\(language) \(sentence)")
            }
        }
    }

    @Test("say the same values in every language")
    func blanks() {
        func blanks(_ template: String) -> Set<Substring> { Set(template.matches(of: /{[a-z]+}/).map(\.output)) }
        for (file, sentence, template) in ShippedWordsTests.templates {
            let english = ShippedWords.english[sentence]?.other ?? ""
            #expect(blanks(template) == blanks(english), "\(file.language) \(template)")
        }
    }

    @Test("have one line each, at most as long as the database allows, in the voice of a friend")
    func lines() {
        for (file, _, template) in ShippedWordsTests.templates {
            #expect(template.count <= 200, "\(template)")
            #expect(template.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }, "\(template)")
            #expect(template.firstMatch(of: #/ [!:;?]/#) == nil, "\(template) may break before the last character")
            for text in file.avoided { #expect(!template.contains(text), "\(file.language) \(template)") }
        }
    }

    @Test("have the plural forms of their language")
    func plurals() {
        for file in ShippedWords.files {
            let rule = PluralRule(file.language)
            let categories = Set((0...200).map { rule.category(of: $0) } + [.other])
            #expect(categories.isSuperset(of: file.plurals), "\(file.language)")
            for (sentence, forms) in file.words { #expect(forms.one != forms.other, "\(file.language) \(sentence)") }
        }
    }

    @Test(
        "are refused with the place of a mistake",
        arguments: [
            ("gentel = a", 2, "there is no word gentel"), (" = a", 2, "there is no word "),
            ("gentle", 2, "write `key = text`"), ("gentle=a", 2, "write `key = text`"),
            ("gentle = a ", 2, "without a space"),
            ("# A\n\ngentle.two = a", 4, "`plurals` above lacks the form of gentle.two"),
            ("gentle.few = a", 2, "`plurals` above lacks the form of gentle.few"),
            ("plurals = two\ngentle = a", 3, "`plurals` above lacks the form of gentle"),
            ("months = a, b, c, d, e, f, g, h, i, j, k, l, m", 2, "there is no word month_13"),
            ("window = a\nwindow.other = b", 3, "window.other is there twice"),
            ("window = {date}", 2, #"window may have ["{remaining}", "{limit}", "{used}", "{wait}"]"#),
            ("window = {used", 2, "a brace without its pair"),
            ("window.one = a\nunlimited = b", 2, "window.other is missing"),
            ("window = a", 1, "gentle is missing"),
        ]
    )
    func mistakes(text: String, line: Int, message: String) {
        let mistake = #expect(throws: LanguageFile.Mistake.self) {
            try LanguageFile.read(["xx.properties": "plurals = one, other\n\(text)\n"])
        }
        #expect(mistake?.description.hasPrefix("xx.properties:\(line): error: ") == true)
        #expect(mistake?.message.contains(message) == true, "\(String(describing: mistake))")
    }

    @Test("of a language lack those that a more general one has")
    func regional() throws {
        let english = try #require(EmbeddedTexts.all["en.properties"])
        let neutral = "plurals = one, other\nblocked_trial = Your trial is used up.\n"
        let files = try LanguageFile.read(["en.properties": english, "en-x-neutral.properties": neutral])
        #expect(files.map(\.language.text) == ["en", "en-x-neutral"])
        #expect(files.map(\.words.count) == [Sentence.allCases.count, 1])
        for name in ["EN.properties", "en.txt", "en_US.properties", ".properties"] {
            #expect(throws: LanguageFile.Mistake.self) { try LanguageFile.read([name: english]) }
        }
    }
}
