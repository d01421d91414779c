import ArgumentParser
import Engine

struct Roles: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the SQL that makes the database roles (migrate does it too, where its login may).",
        discussion: """
            For an administrator, once for each database and before anything else: headroom roles | psql DATABASE. \
            Needs no database.
            """
    )

    func run() throws {
        try StandardOutput.print(Schema.rolesScript, terminator: "")
    }
}
