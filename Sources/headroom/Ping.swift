import ArgumentParser
import HeadroomServer
import LineProtocol
import OperatorConsole

struct Ping: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask a running service whether it answers; for health checks.",
        discussion: """
            Exit status 0 when it does within two seconds, also when the answer is that it wants TLS or a token: it lives.
            """
    )

    @Argument(help: "host:port of the service; without it, the environment's HEADROOM_TARGET, where there is one.")
    var address = TargetOptions.usual
    @OptionGroup(title: "Access") var accessOptions: AccessOptions

    func run() async throws {
        guard let address = ListenAddress(address) else {
            throw ValidationError(
                "the address must be host:port, as the service's ready line says it; so must HEADROOM_TARGET"
            )
        }
        do {
            let access = try accessOptions.access()
            let reply = try await LineClient.ask("PING", at: address, access: access, timeout: .seconds(2))
            guard reply == ["+PONG"] else { throw UnexpectedReply() }
            try StandardOutput.print("PONG")
        } catch let refusal as LineClient.RefusedReply where Ping.isAlive(refusal) {
            try StandardOutput.print(LogfmtHandler.harmless("alive, but \(refusal)"))
        } catch let failure as StandardOutput.Failure {
            throw failure
        } catch {
            throw CommandEnd(error, asking: "the service at \(address)").ofHealthCheck.exit()
        }
    }

    /// It answered as itself; what it wants first is for those to know who ask it more.
    private static func isAlive(_ refusal: LineClient.RefusedReply) -> Bool {
        refusal.code == "NOAUTH" || refusal.code == "PROTOCOL" && refusal.text.hasPrefix("this port speaks TLS")
    }
}
