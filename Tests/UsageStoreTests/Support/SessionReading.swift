import Postgres

extension Session {
    /// The SQLSTATE with which the database refuses a script; nil when it does not.
    func refusal(_ script: String) async throws -> String? {
        try await run { connection in
            do throws(PostgresError) {
                try connection.execute(script, deadline: .now + .seconds(60))
                return nil
            } catch {
                guard let state = error.sqlState else { throw error }
                return state.rawValue
            }
        }
    }

    /// The rows of a query, each row's columns as text with a bar between; nulls are left out.
    func rows(_ sql: String) async throws -> [String] {
        let lines = try await text(
            """
            select string_agg(line_text, chr(10)) from (
                select (
                    select string_agg(field.value, '|' order by field.ordinality)
                    from json_each_text(row_to_json(line)) with ordinality as field
                ) as line_text
                from (\(sql)) as line
            ) as lines
            """
        )
        return lines.map { $0.split(separator: "\n").map(String.init) } ?? []
    }
}
