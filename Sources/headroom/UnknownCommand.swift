import ArgumentParser
import HeadroomServer
import OperatorConsole

/// A word in a command's place that names none. The library takes it for an argument of `serve`, and shows how that is used.
enum UnknownCommand {
    /// - Throws: what ends the program, after it was told.
    static func check(_ words: [String]) throws(ExitCode) {
        var command: any ParsableCommand.Type = Headroom.self
        var path = "headroom"
        for word in words {
            let subcommands = command.configuration.subcommands
            guard !subcommands.isEmpty, !word.hasPrefix("-"), word != "help" else { return }
            guard let next = subcommands.first(where: { name(of: $0) == word }) else {
                let meant = nearestName(to: word, among: subcommands.map(name))
                let advice = meant.map { "did you mean \(path) \($0)? " } ?? ""
                throw CommandEnd.usage(
                    "there is no command \(path) \(printable(word)); \(advice)\(path) --help lists the commands"
                ).exit()
            }
            command = next
            path += " " + word
        }
    }

    private static func name(of command: any ParsableCommand.Type) -> String {
        command.configuration.commandName ?? "\(command)".lowercased()
    }
}
