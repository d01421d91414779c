import PackagePlugin

/// Compiles the target's files that are not Swift into it, as `enum EmbeddedTexts`. As strings: the package manager's
/// `embedInCode` writes arrays of numbers, which took half of the module's time to compile.
@main
struct EmbedTexts: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) async throws -> [Command] {
        let files = target.sourceModule?.sourceFiles.filter { $0.type == .unknown }.map(\.url) ?? []
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedTexts.swift")
        return [
            .buildCommand(
                displayName: "Embedding the texts of \(target.name)",
                executable: try context.tool(named: "embed-files").url,
                arguments: ["texts", output.path] + files.map(\.path),
                inputFiles: files,
                outputFiles: [output]
            )
        ]
    }
}
