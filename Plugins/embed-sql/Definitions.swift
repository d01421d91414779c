import Foundation

/// A function or a view: sql/functions/SCHEMA/NAME.sql, or NAME.VARIANT.sql where functions share a name.
struct Definition {
    let path: String
    let schema: String
    /// With the variant.
    let name: String
    let sql: String

    /// As SQL calls it.
    var object: String { schema + "." + name.prefix { $0 != "." } }
}

func readDefinitions(in directory: String) throws -> [Definition] {
    var definitions: [Definition] = []
    let schemas = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    for schema in schemas.sorted() where isWord(schema) {
        for file in try sqlFiles(in: directory + "/" + schema) {
            let path = directory + "/" + schema + "/" + file
            let words = file.dropLast(4).split(separator: ".", omittingEmptySubsequences: false)
            guard words.count <= 2, words.allSatisfy({ isWord($0) }) else {
                let message = "a definition is named after its function or view: NAME.sql, or NAME.VARIANT.sql"
                throw EmbeddingError(path: path, message: message)
            }
            let name = String(file.dropLast(4))
            let definition = Definition(path: path, schema: schema, name: name, sql: try read(path))
            let created = /create or replace (?:function|view)\s+([\w.]+)/
            guard let match = definition.sql.firstMatch(of: created), match.1 == definition.object else {
                let message = "does not say `create or replace function \(definition.object)`, or view"
                throw EmbeddingError(path: path, message: message)
            }
            definitions.append(definition)
        }
    }
    return definitions
}

/// Sorts definitions so that each comes after those that it names: PostgreSQL resolves names in a view and in the body of
/// an SQL function when it is created. In PL/pgSQL it does so when the function runs, so these depend on nothing.
///
/// - Throws: for a circle of views and SQL functions.
func inOrder(_ definitions: [Definition]) throws -> [Definition] {
    let placesByObject = Dictionary(grouping: definitions.indices) { definitions[$0].object }
    var sorted: [Definition] = []
    var visiting: Set<Int> = []
    var visited: Set<Int> = []

    func needs(_ definition: Definition) -> [Int] {
        let code = definition.sql.replacing(/--[^\n]*/, with: "")
        guard !code.contains("language plpgsql") else { return [] }
        let named = Set(code.matches(of: /\b[a-z]\w*\.\w+/).map { String($0.0) }).subtracting([definition.object])
        return named.flatMap { placesByObject[$0] ?? [] }.sorted()
    }

    func visit(_ place: Int) throws {
        guard !visited.contains(place) else { return }
        guard visiting.insert(place).inserted else {
            let message = "needs itself by way of others; one of them must be written in PL/pgSQL"
            throw EmbeddingError(path: definitions[place].path, message: message)
        }
        for needed in needs(definitions[place]) { try visit(needed) }
        visited.insert(place)
        sorted.append(definitions[place])
    }

    for place in definitions.indices { try visit(place) }
    return sorted
}
