import ArgumentParser

/// What can be said on the command line. All of it is optional here: what a flag leaves out, the environment may say.
struct ChatOptions: ParsableArguments {
    @Option(help: "Where browsers connect; port 0 picks a free one. (default: 127.0.0.1:8080)")
    var listen: String?

    @Option(
        help: "A name under which the chat is opened, beside addresses and localhost; may be repeated. (default: none)"
    )
    var host: [String] = []

    @Option(
        help: "A Headroom service; may be repeated, and the next one is asked when one fails. (default: 127.0.0.1:6747)"
    )
    var headroom: [String] = []

    @Option(help: "A file with the token to ask Headroom with. It needs the scopes chat and dashboard.")
    var headroomTokenFile: String?

    @Option(help: "Headroom's webhook, to which subscriptions are told as RevenueCat tells them. (default: none)")
    var webhook: String?

    @Option(help: "When Headroom cannot be asked: allow, or deny. (default: allow)")
    var whenUnreachable: String?

    @Option(
        help: "A JSON file, [{\"user\", \"name\", \"about\"}]: who can be chosen on the first page. (default: nobody)"
    )
    var people: String?

    @Option(
        help:
            "Who answers: built-in, or the URL of an API like OpenAI's, https://api.openai.com/v1. (default: built-in)"
    )
    var model: String?

    @Option(help: "The model's name at that URL.")
    var modelName: String?

    @Option(help: "Milliseconds between the words of the built-in model, 0 to 5000. (default: 40)")
    var paceMs: Int?

    @Option(help: "Seconds for which a message is held while it is answered, 1 to 86400. (default: 360)")
    var holdTTL: Int?

    @Option(help: "A folder to serve the page from instead of the one in this program, while you change it.")
    var pageDirectory: String?

    @Option(help: "trace, debug, info, notice, warning, error or critical. (default: info)")
    var logLevel: String?
}
