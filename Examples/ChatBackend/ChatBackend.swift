import ArgumentParser
import Foundation
import HeadroomClient
import Logging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@main
struct ChatBackend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chat-backend",
        abstract: "A chat in the browser whose every message Headroom is asked about.",
        discussion: """
            Prints one line `ready chat=http://HOST:PORT` on standard output once it can be opened; logs go to standard error. \
            SIGTERM and SIGINT stop it within 10 seconds. Each setting is also read from the environment, as CHAT_ and the \
            flag's name; the flag wins. Secrets come from the environment or from files only: HEADROOM_TOKEN, \
            CHAT_WEBHOOK_AUTHORIZATION, CHAT_MODEL_KEY.
            """
    )

    @OptionGroup var options: ChatOptions

    func run() async throws {
        let configuration = try ChatConfiguration(options, environment: ProcessInfo.processInfo.environment)
        LoggingSystem.bootstrap(StreamLogHandler.standardError)
        var logger = Logger(label: "chat")
        logger.logLevel = configuration.logLevel
        // Who reads our output may go away; that is no reason to stop.
        signal(SIGPIPE, SIG_IGN)
        try await ChatService(configuration, logger: logger).run { address in
            print("ready chat=http://\(address)")
            fflush(nil)
        }
    }
}
