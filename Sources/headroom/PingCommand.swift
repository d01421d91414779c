import ArgumentParser
import LineClient
import LineProtocol
import OperatorConsole
import ServiceCore

struct PingCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ping",
        abstract: "Check whether a running service answers; for health checks.",
        discussion: """
            Exit status 0 when it answers within two seconds, also when the answer is that it requires TLS or a token.
            """
    )

    @Argument(help: "host:port of the service (default: the environment variable HEADROOM_TARGET, if set).")
    var address = ServiceOptions.defaultTarget
    @OptionGroup(title: "Access") var accessOptions: AccessOptions

    func run() async throws {
        guard let address = ListenAddress(address) else {
            throw ValidationError(
                "the address must be host:port, as in the service's ready line; so must HEADROOM_TARGET"
            )
        }
        do {
            let access = try accessOptions.access()
            let reply = try await LineClient.request("PING", at: address, access: access, timeout: .seconds(2))
            guard reply == ["+PONG"] else { throw UnexpectedReply() }
            try StandardOutput.print("PONG")
        } catch let reply as LineClient.ErrorReply where PingCommand.isAlive(reply) {
            try StandardOutput.print(LogfmtHandler.escaped("alive, but \(reply)"))
        } catch let failure as StandardOutput.Failure {
            throw failure
        } catch {
            throw CommandFailure(error, from: "the service at \(address)").forHealthCheck.exitCodeAfterPrinting()
        }
    }

    /// A service that requires a token or TLS is alive.
    private static func isAlive(_ reply: LineClient.ErrorReply) -> Bool {
        reply.code == "NOAUTH" || reply.code == "PROTOCOL" && reply.text.hasPrefix("this port speaks TLS")
    }
}
