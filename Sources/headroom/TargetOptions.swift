import ArgumentParser
import Engine
import Foundation
import LineClient
import LineProtocol
import OperatorConsole
import Postgres
import ServiceCore
import Usage

/// The service that a command connects to, for commands that print its replies.
struct ServiceOptions: ParsableArguments {
    @Option(help: "host:port of the service (default: the environment variable HEADROOM_TARGET, if set).")
    var target = ServiceOptions.defaultTarget
    @OptionGroup(title: "Access") var accessOptions: AccessOptions

    /// `bench` counts many messages, so it ignores HEADROOM_TARGET.
    static var defaultTarget: String {
        let named = ProcessInfo.processInfo.environment["HEADROOM_TARGET"].flatMap { $0.isEmpty ? nil : $0 }
        return named ?? Settings.listen.defaultText ?? ""
    }

    func validate() throws {
        _ = try address()
    }

    func address() throws -> ListenAddress {
        guard let address = ListenAddress(target), address.port > 0 else {
            throw ValidationError(
                "--target must be host:port, as in the service's ready line; so must HEADROOM_TARGET"
            )
        }
        return address
    }

    /// - Throws: the exit status, after printing the error.
    func access() throws -> ClientAccess {
        do {
            return try accessOptions.access()
        } catch {
            throw CommandFailure(error, from: "the service at \(target)").exitCodeAfterPrinting()
        }
    }

    /// Runs `work` with a connection to the service.
    ///
    /// - Throws: the exit status that fits the error, after printing the error.
    func withClient(_ work: (LineClient) async throws -> Void) async throws {
        do {
            let access = try accessOptions.access()
            let client = try await LineClient.connect(to: try address(), access: access, timeout: .seconds(5))
            do {
                try await work(client)
            } catch {
                await client.close()
                throw error
            }
            await client.close()
        } catch let failure as StandardOutput.Failure {
            throw failure
        } catch {
            throw CommandFailure(error, from: "the service at \(target)").exitCodeAfterPrinting()
        }
    }
}

/// The service that a command connects to, and the form of its output.
struct TargetOptions: ParsableArguments {
    @OptionGroup var service: ServiceOptions
    @Flag(help: "JSON on standard output instead of text; docs/reference/commands.md lists its names.") var json = false

    var target: String { service.target }

    func address() throws -> ListenAddress { try service.address() }
    func access() throws -> ClientAccess { try service.access() }

    func withClient(_ work: (LineClient) async throws -> Void) async throws {
        try await service.withClient(work)
    }
}

/// The error text and exit status of a failed command. docs/reference/commands.md documents the statuses.
struct CommandFailure {
    /// EX_USAGE of sysexits.h, as for any argument that cannot be used.
    private static let usageStatus: Int32 = 64
    /// EX_UNAVAILABLE of sysexits.h.
    private static let unavailableStatus: Int32 = 69

    private var status: Int32
    private var text: String?

    private init(status: Int32, text: String? = nil) {
        self.status = status
        self.text = text
    }

    init(_ error: any Error, from peer: String) {
        switch error {
        case let error as AccessOptions.Unusable: self.init(status: CommandFailure.usageStatus, text: error.description)
        case let exit as ExitCode: self.init(status: exit.rawValue)
        case let reply as LineClient.ErrorReply:
            switch reply.code {
            case "BADARG": self.init(status: CommandFailure.usageStatus, text: reply.text)
            case "UNAVAILABLE", "OVERLOADED", "DRAINING", "UNKNOWN":
                self.init(status: CommandFailure.unavailableStatus, text: "\(peer) cannot answer now: \(reply)")
            case "NOAUTH":
                self.init(status: 1, text: "\(peer) refused: \(reply) (set HEADROOM_TOKEN or --token-file)")
            default: self.init(status: 1, text: "\(peer) refused: \(reply)")
            }
        case is UnexpectedReply, is MalformedReply: self.init(status: 1, text: "\(peer): \(UnexpectedReply())")
        default:
            self.init(
                status: CommandFailure.unavailableStatus,
                text: "\(peer) cannot be reached: \(error)"
            )
        }
    }

    /// The failure for an error that is already printed: its status, and what the text does not say.
    init(afterPrinting reply: LineClient.ErrorReply) {
        self.init(reply, from: "the service")
        if status == CommandFailure.usageStatus { status = 1 }
        text = reply.code == "NOAUTH" ? "set HEADROOM_TOKEN, or give --token-file (headroom token create)" : nil
    }

    static func invalidArguments(_ text: String) -> CommandFailure { CommandFailure(status: usageStatus, text: text) }
    /// What the command is to show or to change does not exist.
    static func notFound(_ text: String) -> CommandFailure { CommandFailure(status: 1, text: text) }
    static func refused(_ text: String) -> CommandFailure { CommandFailure(status: 1, text: text) }
    static func permissionDenied(_ text: String) -> CommandFailure { CommandFailure(status: 1, text: text) }
    static func limitReached(_ text: String) -> CommandFailure { CommandFailure(status: 1, text: text) }
    static func notDelivered(_ text: String) -> CommandFailure { CommandFailure(status: 1, text: text) }
    static func eventsNotApplied(_ text: String) -> CommandFailure { CommandFailure(status: 1, text: text) }
    /// The database lacks a table, column or function that this program uses.
    static func schemaMissing(_ text: String) -> CommandFailure { CommandFailure(status: 1, text: text) }
    static func databaseRefused(_ text: String) -> CommandFailure { CommandFailure(status: 1, text: text) }
    static func databaseUnreachable(_ text: String) -> CommandFailure {
        CommandFailure(status: unavailableStatus, text: text)
    }

    /// Health checks have the statuses 0 and 1 only; Docker reserves others.
    var forHealthCheck: CommandFailure {
        status == CommandFailure.unavailableStatus ? CommandFailure(status: 1, text: text) : self
    }

    /// Prints the error text and returns the exit status, which the command throws.
    func exitCodeAfterPrinting() -> ExitCode {
        if let text { LogfmtHandler.standardError("Error: \(LogfmtHandler.escaped(text))\n") }
        return ExitCode(status)
    }
}

/// An argument that names a user: a UUID, or where the service has the setting user-namespace another text.
struct UserArgument: ExpressibleByArgument {
    static let help: ArgumentHelp = "The user's UUID, or with user-namespace another id."

    let text: String

    init?(argument: String) {
        guard UserNamespace.isName(argument) else { return nil }
        text = argument
    }

    /// The user's id, for a name by the namespace that the database has. This blocks.
    func id(in database: DatabaseTopology) throws(PostgresError) -> UserID {
        if let id = UserID(text) { return id }
        return try UserNamespace.user(named: text, database: database)
    }
}
