import Postgres

/// A live token in the database, which stores only its digest.
public struct LiveToken: Sendable, Equatable {
    public var id: Int64
    public var name: String
    /// The scopes, of `chat`, `dashboard`, `operator`.
    public var scopes: [String]
    /// The SHA-256, 32 bytes.
    public var digest: [UInt8]
    /// The time of its expiry, by the database's clock; nil if it never expires.
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

/// A token whose row violates the checks of `headroom.tokens`. It is not live. Other tokens are not affected.
public struct InvalidToken: Sendable, Hashable {
    public var id: Int64
    /// What is wrong. It names the column, without its value.
    public var problem: String

    public init(id: Int64, problem: String) {
        self.id = id
        self.problem = problem
    }
}

/// The live tokens at one moment.
public struct TokenSnapshot: Sendable {
    /// The most live tokens, which the trigger of `headroom.tokens` ensures.
    public static let tokensMaximum = 1_000

    public var tokens: [LiveToken]
    /// Whether there was ever a token, even if all are revoked or expired by now.
    public var wasEverCreated: Bool
    /// The tokens with invalid rows; of many, the first hundred at least.
    public var invalid: [InvalidToken]

    public init(tokens: [LiveToken], wasEverCreated: Bool, invalid: [InvalidToken] = []) {
        self.tokens = tokens
        self.wasEverCreated = wasEverCreated
        self.invalid = invalid
    }

    init(_ connection: DatabaseConnection, deadline: ContinuousClock.Instant) throws(PostgresError) {
        // The clock is read before the query, so that a token expires here a moment early rather than late.
        let queriedAt = ContinuousClock.now
        let result = try connection.query(EmbeddedSQL.readTokens, deadline: deadline)
        wasEverCreated = result.rowCount > 0 ? try result.firstRow.bool("was_created") : false
        (tokens, invalid) = ([], [])
        _ = try result.rows { row throws(PostgresError) in
            guard try !row.isNull("id") else { return }
            let id = try row.int64("id")
            // The other columns of an invalid row are not read: they may be null.
            if let problem = try row.textOrNil("problem") {
                invalid.append(InvalidToken(id: id, problem: problem))
            } else if tokens.count >= TokenSnapshot.tokensMaximum {
                let problem = "there are \(TokenSnapshot.tokensMaximum) older live tokens"
                invalid.append(InvalidToken(id: id, problem: problem))
            } else {
                tokens.append(
                    LiveToken(
                        id: id,
                        name: try row.text("name"),
                        scopes: try row.texts("scopes"),
                        digest: try row.bytes("digest"),
                        expiresAt: try row.int64OrNil("expires_in_us").map { queriedAt + .microseconds($0) }
                    )
                )
            }
        }
    }

    /// Records that these tokens are in use. A row that violates a check does not prevent the update of the others.
    ///
    /// - Throws: if the database cannot be reached, or refuses every row.
    static func markUsed(
        _ ids: [Int64],
        on connection: DatabaseConnection,
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
        on connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) {
        var parameters = Parameters()
        parameters.appendInt64s(count: ids.count) { ids[$0] }
        _ = try connection.query(EmbeddedSQL.markTokensUsed, parameters, deadline: deadline)
    }

    /// Reads the tokens on a connection of its own.
    ///
    /// - Throws: if the database cannot be reached, or has no such table yet.
    public static func read(database: DatabaseTopology) async throws -> TokenSnapshot {
        let options = ConnectionOptions.service("tokens", database, connectTimeout: .seconds(10))
        return try await onThread(named: "headroom.tokens") {
            let connection = try DatabaseConnection.connect(options)
            defer { connection.close() }
            return try TokenSnapshot(connection, deadline: .now + .seconds(10))
        }
    }
}
