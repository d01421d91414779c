import ArgumentParser
import OperatorConsole
import ServiceCore

struct PlanCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plan",
        abstract: "Change a user's plan, count or limit, or forget the user.",
        discussion: """
            Connects to a running service. Where tokens are required, the token needs the scope operator; the audit log \
            records its name. Prints the user's usage after the change.
            """,
        subcommands: [PlanSetCommand.self, PlanResetCommand.self, PlanGrantCommand.self, PlanForgetCommand.self]
    )
}

/// Sends a change of a user, and prints the user's usage after it.
private func change(_ user: UserArgument, by words: [String], _ options: TargetOptions) async throws {
    try await options.withClient { client in
        _ = try await client.request(words: words, timeout: .seconds(10))
        let report = try await UserCommand.report(of: user, months: 1, client)
        try StandardOutput.print(options.json ? try report.jsonLine() : report.text(width: Terminal.size?.width))
    }
}

/// `name=value`, without options that were not given.
private func present(_ values: KeyValuePairs<String, String?>) -> [String] {
    values.compactMap { name, value in value.map { "\(name)=\($0)" } }
}

struct PlanSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Put a user on a plan, from the next message on.",
        discussion: "Options that are left out get their defaults; the anchor day and the start of a trial stay."
    )

    @Argument(help: UserArgument.help) var user: UserArgument
    @Argument(help: "The plan; the table headroom.plans has all plans.") var plan: String
    @Option(help: "active, trial, free, cancelled, grace_period, billing_retry, expired or revoked.") var state: String?
    @Option(help: "The start of a trial: 2026-11-24 or 2026-11-24T09:30:00Z.") var started: String?
    @Option(help: "The end, in the same form.") var expires: String?
    @Option(help: "The end of a grace period, in the same form.") var graceUntil: String?
    @Option(help: "The day of the month on which the periods of monthly plans begin (1 to 31).") var anchor: Int?
    @OptionGroup var options: TargetOptions

    func run() async throws {
        let values = present([
            "state": state, "started": started, "expires": expires, "grace_until": graceUntil,
            "anchor": anchor.map(String.init),
        ])
        try await change(user, by: ["SETPLAN", user.text, plan] + values, options)
    }
}

struct PlanResetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract: "Set a user's count to 0, or close the user's window."
    )

    @Argument(help: UserArgument.help) var user: UserArgument
    @Argument(help: "The period, such as 2026-11 (default: the current one); window: the open window alone.")
    var period: String?
    @OptionGroup var options: TargetOptions

    func run() async throws {
        try await change(user, by: ["RESETUSAGE", user.text] + [period].compactMap(\.self), options)
    }
}

struct PlanGrantCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grant",
        abstract: "Grant a user messages: in this period, or with --expires in any until then; once for each key."
    )

    @Argument(help: UserArgument.help) var user: UserArgument
    @Argument(help: "How many messages (1 to 1000000).") var messages: Int
    @Option(help: "Such as a ticket's number: the same key again grants nothing.") var key: String
    @Option(help: "For the audit log.") var reason: String?
    @Option(help: "When messages that are not used end: a date, an instant or never (default: with this period).")
    var expires: String?
    @OptionGroup var options: TargetOptions

    func run() async throws {
        let values = present(["key": key, "reason": reason, "expires": expires])
        try await change(user, by: ["GRANT", user.text, "\(messages)"] + values, options)
    }
}

struct PlanForgetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Delete everything about a user; a trial cannot be started a second time."
    )

    @Argument(help: UserArgument.help) var user: UserArgument
    @OptionGroup var service: ServiceOptions

    func run() async throws {
        try await service.withClient { client in
            _ = try await client.request(words: ["FORGET", user.text], timeout: .seconds(10))
            try StandardOutput.print("\(user.text) is forgotten")
        }
    }
}
