import ArgumentParser
import HeadroomServer

struct Ping: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ask a running service whether it answers; for health checks.",
        discussion: "Exit status 0 when it does within two seconds."
    )

    @Argument(help: "host:port of the service.") var address = Setting.listen.defaultValue ?? "127.0.0.1:6747"

    func run() async throws {
        guard let address = ListenAddress(address) else { throw ValidationError("the address must be host:port") }
        let reply = try await LineClient.ask("PING", at: address, timeout: .seconds(2))
        guard reply == ["+PONG"] else { throw ValidationError("the service did not answer PING with PONG") }
        print("PONG")
    }
}
