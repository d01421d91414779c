import Postgres
import TestSupport

extension TestDatabase {
    /// Prepares the division into so many buckets, whose numbers are 1, 2, 3 …; nobody has moved afterwards.
    func beginDivision(into buckets: Int) async throws {
        let numbers = (1...buckets).map(String.init).joined(separator: ", ")
        try await executeBesideRequests("select headroom.begin_division(array[\(numbers)]::smallint[])")
    }

    /// Moves the users of the parts below this number to their buckets.
    func divideUsers(to part: Int) async throws {
        try await executeBesideRequests("select headroom.divide_users(\(part))")
    }

    /// Again after a deadlock with requests that are being executed, as `headroom distribute` does.
    private func executeBesideRequests(_ statement: String) async throws {
        for attempt in 1... {
            do {
                return try await psql.execute(statement)
            } catch let error as PostgresError where error.sqlState == .deadlockDetected && attempt < 20 {
                continue
            }
        }
    }
}
