/// How a request wants the sentences of its answer.
public struct SentenceOptions: Sendable, Hashable {
    /// The language; nil means the setting `language`.
    public var language: LanguageTag?
    /// The time zone of dates. Nil means the plan's, and UTC for a plan without one.
    public var timeZone: CivilTimeZone?

    public init(language: LanguageTag? = nil, timeZone: CivilTimeZone? = nil) {
        self.language = language
        self.timeZone = timeZone
    }
}
