import Foundation
import PackagePlugin

/// Compiles the package's sql/ files into the target that uses this plugin, as `enum EmbeddedSQL`.
///
/// The binary needs nothing beside it that way, and the files stay what psql can run. The work itself is done by the
/// `embed-sql` program, since a plugin may not write files.
@main
struct EmbedSQL: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) async throws -> [Command] {
        let sql = context.package.directoryURL.appending(path: "sql")
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedSQL.swift")
        // SwiftPM asks anew at every build, and the list of inputs is part of what it compares: a changed, an added
        // and a removed file each run the command again.
        let inputs = try ["migrations", "queries"].flatMap { folder in
            try files(in: sql.appending(path: folder))
        }
        return [
            .buildCommand(
                displayName: "Embedding sql/ for \(target.name)",
                executable: try context.tool(named: "embed-sql").url,
                arguments: [sql.path, output.path],
                inputFiles: inputs,
                outputFiles: [output]
            )
        ]
    }

    /// In a fixed order, or the same files would look like another command.
    private func files(in folder: URL) throws -> [URL] {
        guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .sorted { $0.path < $1.path }
    }
}
