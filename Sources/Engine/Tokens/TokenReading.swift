import Postgres

/// A live token as the database has it. The token itself is known to nobody but its owner.
public struct LiveToken: Sendable, Equatable {
    public var id: Int64
    public var name: String
    /// `chat`, `dashboard`, `operator`.
    public var scopes: [String]
    /// SHA-256, 32 bytes.
    public var digest: [UInt8]
    /// By the database's clock; nil is never.
    public var expiresAt: ContinuousClock.Instant?

    public init(
        id: Int64,
        name: String,
        scopes: [String],
        digest: [UInt8],
        expiresAt: ContinuousClock.Instant? = nil
    ) {
        self.id = id
        self.name = name
        self.scopes = scopes
        self.digest = digest
        self.expiresAt = expiresAt
    }
}

/// A token whose row holds what the checks of `headroom.tokens` do not allow: it is not live, and all others are.
public struct RefusedToken: Sendable, Hashable {
    public var id: Int64
    /// Names the column and no value.
    public var problem: String

    public init(id: Int64, problem: String) {
        self.id = id
        self.problem = problem
    }
}

/// What one look at the tokens found.
public struct TokenReading: Sendable {
    /// The trigger of `headroom.tokens` lets no more be live.
    public static let tokensMaximum = 1_000

    public var tokens: [LiveToken]
    /// Also one that is revoked or has expired by now.
    public var wasEverCreated: Bool
    /// Those that are not live for what is in their row, the first hundred at least.
    public var refused: [RefusedToken]

    public init(tokens: [LiveToken], wasEverCreated: Bool, refused: [RefusedToken] = []) {
        self.tokens = tokens
        self.wasEverCreated = wasEverCreated
        self.refused = refused
    }

    /// Looks on this connection.
    init(_ connection: Connection, deadline: ContinuousClock.Instant) throws(PostgresError) {
        // Before asking: a token ends here a moment early rather than late.
        let askedAt = ContinuousClock.now
        let result = try connection.query(EmbeddedSQL.readTokens, deadline: deadline)
        wasEverCreated = result.rowCount > 0 ? try result.bool(0, 0) : false
        tokens = []
        refused = []
        for row in 0..<result.rowCount where !result.isNull(row, 1) {
            let id = try result.int64(row, 1)
            // Columns of a row with a problem are not looked at: they may be null where they must not be.
            if !result.isNull(row, 6) {
                refused.append(RefusedToken(id: id, problem: result.text(row, 6)))
            } else if tokens.count >= TokenReading.tokensMaximum {
                let problem = "there are \(TokenReading.tokensMaximum) older live tokens"
                refused.append(RefusedToken(id: id, problem: problem))
            } else {
                tokens.append(
                    LiveToken(
                        id: id,
                        name: result.text(row, 2),
                        scopes: try result.texts(row, 3).compactMap(\.self),
                        digest: Array(result.bytes(row, 4)),
                        expiresAt: result.isNull(row, 5) ? nil : askedAt + .microseconds(try result.int64(row, 5))
                    )
                )
            }
        }
    }

    /// Notes that these tokens are in use. Where a row is refused, for a check that something else in it breaks, the
    /// others are noted all the same.
    ///
    /// - Throws: when the database cannot be asked, or refuses every row alike.
    static func markUsed(
        _ ids: [Int64],
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) {
        do throws(PostgresError) {
            try update(ids, on: connection, deadline: deadline)
        } catch let error where error.isAboutOneRow && connection.isUsable {
            guard ids.count > 1 else { return }
            let middle = ids.count / 2
            try markUsed(Array(ids[..<middle]), on: connection, deadline: deadline)
            try markUsed(Array(ids[middle...]), on: connection, deadline: deadline)
        }
    }

    private static func update(
        _ ids: [Int64],
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) {
        var parameters = Parameters()
        parameters.appendInt64s(count: ids.count) { ids[$0] }
        _ = try connection.query(EmbeddedSQL.markTokensUsed, parameters, deadline: deadline)
    }

    /// Looks once, on a connection of its own.
    ///
    /// - Throws: when the database cannot be reached, or has no such table yet.
    public static func read(databaseURL: String) async throws -> TokenReading {
        let options = ConnectionOptions.service("tokens", databaseURL, connectTimeout: .seconds(10))
        return try await onThread(named: "headroom.tokens") {
            let connection = try Connection.connect(options)
            defer { connection.close() }
            return try TokenReading(connection, deadline: .now + .seconds(10))
        }
    }
}
