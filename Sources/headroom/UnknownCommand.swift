import ArgumentParser
import OperatorConsole
import ServiceCore

/// Reports an unknown command, with the one that was meant. The library would call it an unexpected argument.
enum UnknownCommand {
    /// - Throws: the exit status, after printing the error.
    static func check(_ words: [String]) throws(ExitCode) {
        var command: any ParsableCommand.Type = Headroom.self
        var path = "headroom"
        for word in words {
            let subcommands = command.configuration.subcommands
            guard !subcommands.isEmpty, !word.hasPrefix("-"), word != "help" else { return }
            guard let next = subcommands.first(where: { name(of: $0) == word }) else {
                let meant = nearestName(to: word, among: subcommands.map(name))
                let advice = meant.map { "did you mean \(path) \($0)? " } ?? ""
                throw CommandFailure.invalidArguments(
                    "unknown command \(path) \(printable(word)); \(advice)\(path) --help lists the commands"
                ).exitCodeAfterPrinting()
            }
            command = next
            path += " " + word
        }
    }

    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }
}
