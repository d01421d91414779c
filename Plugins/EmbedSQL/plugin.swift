import Foundation
import PackagePlugin

/// Compiles the package's sql/ files into the target that uses this plugin, as `enum EmbeddedSQL`.
///
/// The binary needs nothing beside it that way, and the files stay what psql can run.
@main
struct EmbedSQL: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) async throws -> [Command] {
        let sql = context.package.directoryURL.appending(path: "sql")
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedSQL.swift")
        // SwiftPM asks a plugin again only when a file is added to or removed from a target's own folder, and sql/ is
        // none: a list of the files in it would be out of date as soon as there is a new one, and an edit of that one
        // would go unnoticed. So the command runs in every build (some milliseconds), because it touches its own
        // input, and writes its output only when that differs.
        let lastRun = context.pluginWorkDirectoryURL.appending(path: "last-run")
        if !FileManager.default.fileExists(atPath: lastRun.path) {
            try Data().write(to: lastRun)
        }
        return [
            .buildCommand(
                displayName: "Embedding sql",
                executable: try context.tool(named: "embed-sql").url,
                arguments: [sql.path, output.path, lastRun.path],
                inputFiles: [lastRun],
                outputFiles: [output]
            )
        ]
    }
}
