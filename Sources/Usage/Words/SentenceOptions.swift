/// How a request wants the sentences of its answer.
public struct SentenceOptions: Sendable, Hashable {
    /// Nil is the setting `language`.
    public var language: LanguageTag?
    /// In which they say dates. Nil is the plan's, and UTC for a plan without one.
    public var timeZone: CivilTimeZone?

    public init(language: LanguageTag? = nil, timeZone: CivilTimeZone? = nil) {
        self.language = language
        self.timeZone = timeZone
    }
}
