import Foundation

/// A function or a view: sql/functions/SCHEMA/NAME.sql, or NAME.VARIANT.sql for overloaded functions.
struct Definition {
    let path: String
    let schema: String
    /// The name of the file, including the variant.
    let name: String
    let sql: String

    /// The name of the function or view in SQL.
    var object: String { schema + "." + name.prefix { $0 != "." } }
}

func readDefinitions(in directory: String) throws -> [Definition] {
    var definitions: [Definition] = []
    let schemas = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    for schema in schemas.sorted() where isIdentifier(schema) {
        for file in try sqlFiles(in: directory + "/" + schema) {
            let path = directory + "/" + schema + "/" + file
            let parts = file.dropLast(4).split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count <= 2, parts.allSatisfy({ isIdentifier($0) }) else {
                let message = "name a definition after its function or view: NAME.sql, or NAME.VARIANT.sql"
                throw EmbeddingError(path: path, message: message)
            }
            let name = String(file.dropLast(4))
            let definition = Definition(path: path, schema: schema, name: name, sql: try read(path))
            let created = /create or replace (?:function|view)\s+([\w.]+)/
            guard let match = definition.sql.firstMatch(of: created), match.1 == definition.object else {
                let message = "must contain `create or replace function \(definition.object)`, or view"
                throw EmbeddingError(path: path, message: message)
            }
            definitions.append(definition)
        }
    }
    return definitions
}

/// Sorts definitions so that each follows those on which it depends. PostgreSQL resolves names in views and SQL
/// functions at creation. In PL/pgSQL it resolves them at execution, so these functions have no dependencies.
///
/// - Throws: for a cycle of views and SQL functions.
func sortedByDependency(_ definitions: [Definition]) throws -> [Definition] {
    let indicesByObject = Dictionary(grouping: definitions.indices) { definitions[$0].object }
    var sorted: [Definition] = []
    var visiting: Set<Int> = []
    var visited: Set<Int> = []

    func dependencies(of definition: Definition) -> [Int] {
        let code = definition.sql.replacing(/--[^\n]*/, with: "")
        guard !code.contains("language plpgsql") else { return [] }
        let names = Set(code.matches(of: /\b[a-z]\w*\.\w+/).map { String($0.0) }).subtracting([definition.object])
        return names.flatMap { indicesByObject[$0] ?? [] }.sorted()
    }

    func visit(_ index: Int) throws {
        guard !visited.contains(index) else { return }
        guard visiting.insert(index).inserted else {
            let message = "depends on itself; write one of the functions in the cycle in PL/pgSQL"
            throw EmbeddingError(path: definitions[index].path, message: message)
        }
        for dependency in dependencies(of: definitions[index]) { try visit(dependency) }
        visited.insert(index)
        sorted.append(definitions[index])
    }

    for index in definitions.indices { try visit(index) }
    return sorted
}
