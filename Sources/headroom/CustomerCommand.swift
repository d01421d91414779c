import ArgumentParser
import Engine
import JSON
import OperatorConsole
import ServiceCore
import StoreEvents

struct CustomerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "customer",
        abstract: "Say whose a store's customer or transaction is.",
        discussion: """
            Connects to the database, not to a service. The database login must be granted headroom_operator or own the \
            schema. Exit status 1 if there is no such transaction or customer, it belongs to another user, or the database \
            refuses; 69 if it cannot be reached.
            """,
        subcommands: [CustomerLinkCommand.self]
    )
}

struct CustomerLinkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "link",
        abstract: "Give a transaction that names no user, such as a family member's, to a user.",
        discussion: """
            Events that waited for the user are applied at once. The store's own events prevail: what they give to another \
            user is refused, and a later one that names another user takes it away. Linking again corrects a link.
            """
    )

    @Argument(help: ArgumentHelp("\(Stores.names), or a billing system's name.")) var source: String
    @Argument(help: "The original transaction, or the store's id of the customer.") var name: String
    @Argument(help: UserArgument.help) var user: UserArgument
    @Option(help: "For the audit log.") var reason: String?
    @Flag(help: "JSON on standard output, in one line.") var json = false
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard DirectEvent.isSource(source) else {
            throw ValidationError("a source is \(Stores.names), or a billing system's name in lower case")
        }
        guard (1...255).contains(name.unicodeScalars.count) else {
            throw ValidationError("a transaction, or a customer's id, has 1 to 255 characters")
        }
    }

    func run() async throws {
        let (source, name, user, reason) = (source, name, user, reason)
        let result = try await StoreCommands.run(database) { database in
            try BillingEventLog(database: database).link(source, name, to: user.id(in: database), reason: reason)
        }
        switch result {
        case .done(let answer): try StandardOutput.print(json ? answer.jsonLine() : report(answer).text)
        case .notFound(let problem): throw CommandFailure.notFound(problem).exitCodeAfterPrinting()
        case .invalid(let problem): throw CommandFailure.invalidArguments(problem).exitCodeAfterPrinting()
        case .refused(let problem): throw CommandFailure.refused(problem).exitCodeAfterPrinting()
        }
    }

    private func report(_ answer: JSONValue) -> CustomerLinkReport {
        var events: [String: Int] = [:]
        if case .object(let counts)? = answer["events"] {
            for (outcome, count) in counts { if case .integer(let count) = count { events[outcome] = Int(count) } }
        }
        return CustomerLinkReport(
            user: user.text,
            isNew: answer["outcome"]?.string != "duplicate",
            events: events,
            plan: answer["plan"]?.string,
            state: answer["state"]?.string,
            expires: answer["expires"]?.string
        )
    }
}
