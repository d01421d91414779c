import OperatorConsole
import Postgres
import ServiceCore

/// Database access and error texts of the commands about stores.
enum StoreCommands {
    static func run<Value: Sendable>(
        _ database: DatabaseOptions,
        _ work: @escaping @Sendable (_ database: DatabaseTopology) throws -> Value
    ) async throws -> Value {
        try await DatabaseAccess(database).run(onThreadNamed: "headroom.stores", failingWith: failure, work)
    }

    private static func failure(_ error: PostgresError) -> CommandFailure {
        switch error.sqlState {
        case .insufficientPrivilege:
            .permissionDenied(
                "this role may not read or change billing; connect as one that is granted headroom_operator"
            )
        case .noDataFound:
            .notFound("there is no such plan; select plan from headroom.plans lists them")
        default: CommandFailure(error)
        }
    }
}
