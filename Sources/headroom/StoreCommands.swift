import HeadroomServer
import OperatorConsole
import Postgres

/// What the commands about stores have in common: their way to the database, and what they say when it refuses.
enum StoreCommands {
    static func run<Value: Sendable>(
        _ database: DatabaseOptions,
        _ work: @escaping @Sendable (_ databaseURL: String) throws -> Value
    ) async throws -> Value {
        try await DatabaseAccess(database).run(onThreadNamed: "headroom.stores", endingWith: end, work)
    }

    private static func end(_ error: PostgresError) -> CommandEnd {
        switch error.sqlState {
        case SQLState(rawValue: "42P01"), SQLState(rawValue: "3F000"), SQLState(rawValue: "42883"):
            .schemaIsMissing
        case SQLState(rawValue: "42501"):
            .noData("this role may not see to what stores send; connect as one that is granted headroom_operator")
        case SQLState(rawValue: "P0002"):
            .noData("there is no such plan; select plan from headroom.plans lists them")
        default: CommandEnd(error)
        }
    }
}
