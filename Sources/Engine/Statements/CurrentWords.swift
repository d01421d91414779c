import Logging
import Postgres
import Synchronization
import Usage

/// The words for answers: those of the newest revision that any of the service's sessions has seen, or the compiled-in
/// ones until the database was read.
public final class CurrentWords: Sendable {
    /// The revision of the database at which `words` were read; -1 before the first time.
    private let revision = Atomic<Int32>(-1)
    /// A number that changes with `words`, so that a reader can keep them.
    private let generation = Atomic<Int>(0)
    private let words: Mutex<Words>
    /// This is locked while a session reads the words, unlike `words`. The value is the end of a pause after a failure.
    private let reading = Mutex<ContinuousClock.Instant?>(nil)
    private let standard: LanguageTag

    /// - Parameter standard: the setting `language`.
    public init(standard: LanguageTag = .english) {
        self.standard = standard
        words = Mutex(standard == .english ? .shipped : Words(ShippedWords.rows, standard: standard))
    }

    public var current: Words { words.withLock { $0 } }

    /// Keeps the words between two changes, so that an answer costs only one comparison.
    public struct Reader {
        private let source: CurrentWords
        private var generation: Int
        private var words: Words
        /// The vocabulary of the standard language. It is kept, because nearly all answers are in it.
        private var standard: Vocabulary

        public init(_ source: CurrentWords) {
            self.source = source
            generation = source.generation.load(ordering: .acquiring)
            words = source.current
            standard = words.standard
        }

        /// The vocabulary of the current words; see `Words.vocabulary(for:)`.
        ///
        /// - Parameter options: nil means the standard language.
        public mutating func vocabulary(for options: SentenceOptions?) -> Vocabulary {
            let newest = source.generation.load(ordering: .acquiring)
            if newest != generation {
                (generation, words) = (newest, source.current)
                standard = words.standard
            }
            return options.map { words.vocabulary(for: $0) } ?? standard
        }
    }

    func isOutdated(_ seen: Int32) -> Bool { revision.load(ordering: .acquiring) != seen }

    /// Reads the words if they are of another revision than `seen`. One session reads at a time, so that later words
    /// never give way to earlier ones, whichever reader was slower.
    ///
    /// - Parameters:
    ///   - seen: the revision that a session has seen; nil reads the words in any case.
    ///   - timeout: the time for the statement, which begins when no other session reads.
    /// - Throws: if they cannot be read. They stay as they are, and are read again a second later.
    public func refresh(
        seen: Int32? = nil,
        over connection: DatabaseConnection,
        timeout: Duration,
        _ logger: Logger
    ) throws(PostgresError) {
        let failure = reading.withLock { retryAt -> PostgresError? in
            if let seen, !isOutdated(seen) { return nil }
            if seen != nil, let retryAt, .now < retryAt { return nil }
            do throws(PostgresError) {
                let result = try connection.query(EmbeddedSQL.readWords, deadline: .now + timeout)
                let newest = Words(try CurrentWords.rows(result), standard: standard) { row in
                    logger.warning(
                        "a row of headroom.words has an invalid template; the word falls back",
                        metadata: ["lang": "\(row.language)", "word": "\(row.sentence.rawValue)"]
                    )
                }
                words.withLock { $0 = newest }
                generation.add(1, ordering: .releasing)
                revision.store(result.wordsRevision ?? -1, ordering: .releasing)
                retryAt = nil
                return nil
            } catch {
                retryAt = .now + CurrentWords.pauseAfterFailure
                return error
            }
        }
        if let failure { throw failure }
    }

    private static let pauseAfterFailure = Duration.seconds(1)

    /// Decodes the words. Rows of words that this release does not have are ignored.
    private static func rows(_ result: QueryResult) throws(PostgresError) -> [Words.Row] {
        let (lang, word) = (try result.column("lang"), try result.column("word"))
        let (one, other) = (try result.column("one"), try result.column("other"))
        let (few, many) = (try result.column("few"), try result.column("many"))
        func text(_ row: Int, _ column: Int) -> String? { result.isNull(row, column) ? nil : result.text(row, column) }
        return (0..<result.rowCount).compactMap { row in
            guard let other = text(row, other), let sentence = Sentence(rawValue: result.text(row, word)),
                let language = LanguageTag(result.text(row, lang))
            else { return nil }
            let forms = WordForms(one: text(row, one), few: text(row, few), many: text(row, many), other: other)
            return Words.Row(language, sentence, forms)
        }
    }
}

extension QueryResult {
    /// The revision of the words when the statement began; nil if it cannot be read.
    var wordsRevision: Int32? {
        guard rowCount > 0, let column = try? column("words_revision"), !isNull(0, column) else { return nil }
        return try? int32(0, column)
    }
}
