import Foundation
import PackagePlugin

/// Compiles the files of sql/ into the target that uses this plugin, as `enum EmbeddedSQL`, so that the binary is
/// self-contained and psql can execute the files.
@main
struct EmbedSQL: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) async throws -> [Command] {
        let sql = context.package.directoryURL.appending(path: "sql")
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedSQL.swift")
        // SwiftPM calls a plugin again only if files of the target's own folder are added or removed, so a list of the
        // files in sql/ would not include new ones. Instead, the command writes its own input and so runs in every
        // build, which takes some milliseconds. It writes its output only if that differs.
        let lastRun = context.pluginWorkDirectoryURL.appending(path: "last-run")
        if !FileManager.default.fileExists(atPath: lastRun.path) {
            try Data().write(to: lastRun)
        }
        return [
            .buildCommand(
                displayName: "Embedding sql",
                executable: try context.tool(named: "embed-files").url,
                arguments: ["sql", sql.path, output.path, lastRun.path],
                inputFiles: [lastRun],
                outputFiles: [output]
            )
        ]
    }
}
