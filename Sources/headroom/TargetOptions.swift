import ArgumentParser
import Foundation
import HeadroomServer
import LineProtocol
import OperatorConsole
import Usage

/// Which service a command asks.
struct TargetOptions: ParsableArguments {
    @Option(help: "host:port of the service; without it, the environment's HEADROOM_TARGET, where there is one.")
    var target = TargetOptions.usual
    @OptionGroup(title: "Access") var accessOptions: AccessOptions
    @Flag(help: "JSON on standard output instead of text; docs/reference.md has its names.") var json = false

    /// Of a command that only asks. `bench` counts messages: it goes to no service that was not named for it.
    static var usual: String {
        let named = ProcessInfo.processInfo.environment["HEADROOM_TARGET"].flatMap { $0.isEmpty ? nil : $0 }
        return named ?? Settings.listen.defaultText ?? ""
    }

    func validate() throws {
        _ = try address()
    }

    func address() throws -> ListenAddress {
        guard let address = ListenAddress(target), address.port > 0 else {
            throw ValidationError(
                "--target must be host:port, as the service's ready line says it; so must HEADROOM_TARGET"
            )
        }
        return address
    }

    /// - Throws: the exit status, after printing the error.
    func access() throws -> ClientAccess {
        do {
            return try accessOptions.access()
        } catch {
            throw CommandEnd(error, asking: "the service at \(target)").exit()
        }
    }

    /// Runs what asks the service; tells what went wrong, and ends with the exit status that says which kind it was.
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
            throw CommandEnd(error, asking: "the service at \(target)").exit()
        }
    }
}

/// Why a command ends without what it was asked for. The statuses are documented in docs/reference.md, Commands.
struct CommandEnd {
    /// EX_USAGE of sysexits.h, as for any argument that cannot be used.
    private static let usage: Int32 = 64
    /// EX_UNAVAILABLE of sysexits.h.
    private static let unreachable: Int32 = 69

    private var status: Int32
    private var text: String?

    private init(status: Int32, text: String? = nil) {
        self.status = status
        self.text = text
    }

    init(_ error: any Error, asking whom: String) {
        switch error {
        case let problem as AccessOptions.Unusable: self.init(status: CommandEnd.usage, text: problem.description)
        case let exit as ExitCode: self.init(status: exit.rawValue)
        case let refusal as LineClient.RefusedReply:
            switch refusal.code {
            case "BADARG": self.init(status: CommandEnd.usage, text: refusal.text)
            case "UNAVAILABLE", "OVERLOADED", "DRAINING", "UNKNOWN":
                self.init(status: CommandEnd.unreachable, text: "\(whom) cannot answer now: \(refusal)")
            case "NOAUTH":
                self.init(status: 1, text: "\(whom) refused: \(refusal) (HEADROOM_TOKEN or --token-file has the token)")
            default: self.init(status: 1, text: "\(whom) refused: \(refusal)")
            }
        case is UnexpectedReply, is MalformedReply: self.init(status: 1, text: "\(whom): \(UnexpectedReply())")
        default:
            self.init(
                status: CommandEnd.unreachable,
                text: "\(whom) cannot be reached: \(error)"
            )
        }
    }

    static func usage(_ text: String) -> CommandEnd { CommandEnd(status: usage, text: text) }
    static func noData(_ text: String) -> CommandEnd { CommandEnd(status: 1, text: text) }
    static func unreachable(_ text: String) -> CommandEnd { CommandEnd(status: unreachable, text: text) }

    /// What runs health checks knows the statuses 0 and 1 only; Docker keeps others for itself.
    var ofHealthCheck: CommandEnd {
        status == CommandEnd.unreachable ? CommandEnd(status: 1, text: text) : self
    }

    /// Says it on standard error.
    func exit() -> ExitCode {
        if let text { LogfmtHandler.standardError("Error: \(LogfmtHandler.harmless(text))\n") }
        return ExitCode(status)
    }
}

/// An argument that names a user.
struct UserArgument: ExpressibleByArgument {
    let id: UserID

    init?(argument: String) {
        guard let id = UserID(argument) else { return nil }
        self.id = id
    }
}
