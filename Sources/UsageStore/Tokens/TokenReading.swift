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

/// What one look at the tokens found.
public struct TokenReading: Sendable {
    public var tokens: [LiveToken]
    /// Also one that is revoked or has expired by now.
    public var wasEverCreated: Bool
    /// Tokens that are not live because nobody can say when they expire.
    public var outOfRange: Int

    public init(tokens: [LiveToken], wasEverCreated: Bool, outOfRange: Int = 0) {
        self.tokens = tokens
        self.wasEverCreated = wasEverCreated
        self.outOfRange = outOfRange
    }

    /// Looks on this connection.
    init(_ connection: Connection, deadline: ContinuousClock.Instant) throws(PostgresError) {
        // Before asking: a token ends here a moment early rather than late.
        let askedAt = ContinuousClock.now
        let result = try connection.query(EmbeddedSQL.readTokens, deadline: deadline)
        wasEverCreated = result.rowCount > 0 && result.bool(0, 0)
        outOfRange = result.rowCount > 0 ? Int(result.int64(0, 6)) : 0
        tokens = (0..<result.rowCount).compactMap { row in
            guard !result.isNull(row, 1) else { return nil }
            return LiveToken(
                id: result.int64(row, 1),
                name: result.text(row, 2),
                scopes: result.texts(row, 3).compactMap(\.self),
                digest: Array(result.bytes(row, 4)),
                expiresAt: result.isNull(row, 5) ? nil : askedAt + .microseconds(result.int64(row, 5))
            )
        }
    }

    /// Notes that these tokens are in use.
    static func markUsed(
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
