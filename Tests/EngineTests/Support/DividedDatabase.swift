import TestSupport

extension TestDatabase {
    /// Prepares the division into so many buckets, whose numbers are 1, 2, 3 …; nobody has moved afterwards.
    func beginDivision(into buckets: Int) async throws {
        let numbers = (1...buckets).map(String.init).joined(separator: ", ")
        try await psql.execute("select headroom.begin_division(array[\(numbers)]::smallint[])")
    }

    /// Moves the users of the parts below this number to their buckets.
    func divideUsers(to part: Int) async throws {
        try await psql.execute("select headroom.divide_users(\(part))")
    }
}
