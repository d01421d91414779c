import ArgumentParser
import Engine

struct RolesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "roles",
        abstract: "Print the SQL that creates the database roles (migrate does it too, if its login may).",
        discussion: """
            For an administrator, first and once for each database: headroom roles | psql DATABASE. \
            Connects to no database itself.
            """
    )

    func run() throws {
        try StandardOutput.print(Schema.rolesScript, terminator: "")
    }
}
