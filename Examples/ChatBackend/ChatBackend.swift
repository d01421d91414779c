import ArgumentParser
import AsyncHTTPClient
import HeadroomClient
import Hummingbird

@main
struct ChatBackend: AsyncParsableCommand {
    func run() async throws {
        print("nothing yet")
    }
}
