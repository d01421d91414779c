import Foundation

/// A function or a view: sql/functions/SCHEMA/SUBJECT/NAME.sql, or NAME.VARIANT.sql for overloaded functions. A schema
/// with few files has no folders of subjects.
struct Definition {
    let path: String
    let schema: String
    /// The name of the file, including the variant.
    let name: String
    let sql: String

    /// The name of the function or view in SQL.
    var object: String { schema + "." + name.prefix { $0 != "." } }
}

/// - Throws: for a file in the wrong place or with the wrong name, and for two files of the same name.
func readDefinitions(in directory: String) throws -> [Definition] {
    var definitions: [String: Definition] = [:]
    if let file = try sqlFiles(in: directory).first {
        throw EmbeddingError(path: directory + "/" + file, message: "put it into the folder of its schema")
    }
    for schema in try folders(in: directory) {
        for folder in try foldersOfDefinitions(in: directory + "/" + schema) {
            for file in try sqlFiles(in: folder) {
                let definition = try readDefinition(folder + "/" + file, schema: schema)
                if let other = definitions.updateValue(definition, forKey: schema + "." + definition.name) {
                    throw EmbeddingError(path: definition.path, message: "is in \(other.path), too")
                }
            }
        }
    }
    return definitions.sorted { $0.key < $1.key }.map(\.value)
}

/// The folders of subjects, or that of the schema if it has none.
private func foldersOfDefinitions(in schema: String) throws -> [String] {
    let subjects = try folders(in: schema).map { schema + "/" + $0 }
    guard let first = subjects.first else { return [schema] }
    if let file = try sqlFiles(in: schema).first {
        let message = "put it into a folder of its subject, such as \(first)"
        throw EmbeddingError(path: schema + "/" + file, message: message)
    }
    for subject in subjects {
        guard let folder = try folders(in: subject).first else { continue }
        throw EmbeddingError(path: subject + "/" + folder, message: "the folder of a subject contains files only")
    }
    return subjects
}

private func readDefinition(_ path: String, schema: String) throws -> Definition {
    let name = String(path.split(separator: "/").last?.dropLast(4) ?? "")
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count <= 2, parts.allSatisfy({ isIdentifier($0) }) else {
        let message = "name a definition after its function or view: NAME.sql, or NAME.VARIANT.sql"
        throw EmbeddingError(path: path, message: message)
    }
    let definition = Definition(path: path, schema: schema, name: name, sql: try read(path))
    guard definedObjects(in: definition.sql) == [definition.object] else {
        let message = "must contain `create or replace function \(definition.object)`, or view, and no other one"
        throw EmbeddingError(path: path, message: message)
    }
    return definition
}

/// The functions and views that a file creates.
func definedObjects(in sql: String) -> [String] {
    sql.matches(of: /create or replace (?:function|view)\s+([\w.]+)/).map { String($0.1) }
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
