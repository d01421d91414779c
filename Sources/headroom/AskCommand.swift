import ArgumentParser
import LineClient
import LineProtocol
import ServiceCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

struct AskCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ask",
        abstract: "Send requests to a running service, and print its replies.",
        discussion: """
            Each argument is a request: headroom ask 'CONSUME 7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11'. Without arguments, each \
            line of standard input is one. They are sent one after the other. Exit status 0 when every reply is an answer, 1 \
            when one is an error, 69 when the service, or its database, cannot be reached.
            """
    )

    @Argument(help: ArgumentHelp("A request in quotation marks; HELP lists all.", valueName: "request"))
    var requests: [String] = []
    @Option(help: "Seconds to wait for each reply (1 to 3600).") var timeout = 70
    @OptionGroup var service: ServiceOptions

    func validate() throws {
        guard (1...3_600).contains(timeout) else { throw ValidationError("--timeout must be 1 to 3600") }
        // Words of one request that were not quoted.
        if let first = requests.first, !first.contains(" "), requests.dropFirst().contains(where: { !begins($0) }) {
            throw ValidationError("a request is one argument: headroom ask '\(requests.joined(separator: " "))'")
        }
        for request in requests { try AskCommand.check(request) }
    }

    /// Whether the text begins with the name of a verb.
    private func begins(_ request: String) -> Bool {
        AskCommand.verb(of: request).flatMap { Verb(rawValue: $0) } != nil
    }

    private static func verb(of request: String) -> String? {
        request.split(separator: " ", maxSplits: 1).first.map { $0.uppercased() }
    }

    /// - Throws: for what has no reply, or not one reply to one line.
    private static func check(_ request: String) throws(ValidationError) {
        switch verb(of: request) {
        case "SUBSCRIBE", "UNSUBSCRIBE":
            throw ValidationError("ask prints one reply to each request; follow changes with redis-cli SUBSCRIBE")
        case "HELLO": throw ValidationError("HELLO is for client libraries; ask reads replies of lines only")
        case .some(let verb) where verb.hasPrefix("*"):
            throw ValidationError("a request is a line of words, not an array")
        default: break
        }
        if request.contains(where: \.isNewline) { throw ValidationError("a request is one line") }
    }

    func run() async throws {
        if requests.isEmpty, isatty(STDIN_FILENO) == 1 {
            LogfmtHandler.standardError("Type requests, one a line; Ctrl-D ends.\n")
        }
        var arguments = requests.makeIterator()
        func next() throws -> String? {
            guard requests.isEmpty, let line = readLine() else { return arguments.next() }
            do {
                try AskCommand.check(line)
            } catch {
                throw CommandFailure.invalidArguments(error.message).exitCodeAfterPrinting()
            }
            return line
        }
        // The first request is read before the connection is opened, which the service closes if typing takes long.
        guard var request = try next() else {
            throw CommandFailure.invalidArguments("there is no request: headroom ask 'PING'").exitCodeAfterPrinting()
        }
        var failure: CommandFailure?
        try await service.withClient { client in
            while true {
                failure = try await send(request, to: client) ?? failure
                guard let following = try next() else { return }
                request = following
            }
        }
        if let failure { throw failure.exitCodeAfterPrinting() }
    }

    /// Prints the reply, as the service sent it.
    ///
    /// - Returns: nil if it is an answer.
    private func send(_ request: String, to client: LineClient) async throws -> CommandFailure? {
        // The service ignores empty lines.
        guard !request.allSatisfy(\.isWhitespace) else { return nil }
        let reply = try await client.reply(to: request, timeout: .seconds(timeout))
        let lines = (reply.isList ? ["*\(reply.lines.count)"] : []) + reply.lines
        try StandardOutput.print(lines.map(LogfmtHandler.escaped).joined(separator: "\n"))
        return reply.isError ? CommandFailure(afterPrinting: LineClient.ErrorReply(reply.lines[0])) : nil
    }
}
