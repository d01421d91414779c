import Foundation

// embed-files sql SQL-DIRECTORY OUTPUT.swift LAST-RUN
//
// Writes `enum EmbeddedSQL`: the migrations of tables/ by number, the definitions of functions/ in the order of their
// dependencies, and each query and script under the name of its file. Executed by the EmbedSQL plugin.
//
// embed-files texts OUTPUT.swift FILE …
//
// Writes `enum EmbeddedTexts`: each file under its name. Executed by the EmbedTexts plugin.
//
// It has no dependencies, because they would have to be built before all targets with embedded files.

/// An error in a file, printed in the form of compiler errors.
struct EmbeddingError: Error {
    let path: String
    let message: String
}

struct Migration {
    let number: Int
    let name: String
    let sql: String
}

struct Query {
    let name: String
    let sql: String
}

func sqlFiles(in directory: String) throws -> [String] {
    guard FileManager.default.fileExists(atPath: directory) else { return [] }
    return try FileManager.default.contentsOfDirectory(atPath: directory)
        .filter { $0.hasSuffix(".sql") && !$0.hasPrefix(".") }
        .sorted()
}

func folders(in directory: String) throws -> [String] {
    guard FileManager.default.fileExists(atPath: directory) else { return [] }
    return try FileManager.default.contentsOfDirectory(atPath: directory)
        .filter { name in
            var isDirectory: ObjCBool = false
            return FileManager.default.fileExists(atPath: directory + "/" + name, isDirectory: &isDirectory)
                && isDirectory.boolValue && !name.hasPrefix(".")
        }
        .sorted()
}

func read(_ path: String) throws -> String {
    guard let bytes = FileManager.default.contents(atPath: path) else {
        throw EmbeddingError(path: path, message: "cannot be read")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
        throw EmbeddingError(path: path, message: "is not UTF-8; save it as UTF-8")
    }
    // Swift would replace CR LF in a literal by LF, and the checksum in the database would differ from the file's.
    let isForbidden = { (byte: UInt8) in byte < 0x20 && byte != UInt8(ascii: "\n") && byte != UInt8(ascii: "\t") }
    if let byte = bytes.first(where: isForbidden) {
        let message = "contains the control character \(byte); use LF line ends and no control characters but tab"
        throw EmbeddingError(path: path, message: message)
    }
    return text
}

func isIdentifier(_ text: some StringProtocol) -> Bool {
    guard let first = text.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first) else { return false }
    return text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
        default: false
        }
    }
}

/// - Throws: unless the files are 0001_…, 0002_… without gaps or duplicates. A gap is a missing file, a duplicate a
///   conflict of two branches.
func readMigrations(in directory: String) throws -> [Migration] {
    var migrations: [Migration] = []
    for file in try sqlFiles(in: directory) {
        let path = directory + "/" + file
        let parts = file.dropLast(4).split(separator: "_", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 4, parts[0].utf8.allSatisfy({ (48...57).contains($0) }),
            let number = Int(parts[0]), isIdentifier(parts[1])
        else {
            let message = "name a migration NNNN_what_it_does.sql: four digits, then lower-case letters, digits, _"
            throw EmbeddingError(path: path, message: message)
        }
        let expected = migrations.count + 1
        if let last = migrations.last, last.number == number {
            let message = "has the number of \(parts[0])_\(last.name).sql; give the newer one the next free number"
            throw EmbeddingError(path: path, message: message)
        }
        guard number == expected else {
            let message = "migration \(expected) is missing before it; numbers start at 0001 and leave no gap"
            throw EmbeddingError(path: path, message: message)
        }
        migrations.append(Migration(number: number, name: String(parts[1]), sql: try read(path)))
    }
    return migrations
}

func readQueries(in directories: [String]) throws -> [Query] {
    var queries: [Query] = []
    for path in try directories.flatMap({ directory in try sqlFiles(in: directory).map { directory + "/" + $0 } }) {
        let file = path.split(separator: "/").last ?? ""
        let words = file.dropLast(4).split(separator: "_", omittingEmptySubsequences: false)
        guard isIdentifier(file.dropLast(4)), !words.contains("") else {
            let message = "name a query in_lower_case.sql; it becomes EmbeddedSQL.inLowerCase"
            throw EmbeddingError(path: path, message: message)
        }
        let name = String(words[0]) + words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
        guard name != "migrations", name != "definitions", !queries.contains(where: { $0.name == name }) else {
            throw EmbeddingError(path: path, message: "EmbeddedSQL.\(name) exists already; choose another file name")
        }
        let sql = try read(path)
        guard definedObjects(in: sql).isEmpty else {
            throw EmbeddingError(path: path, message: "put a function or a view into functions/")
        }
        // Identifies the statement in pg_stat_activity and in the server's log.
        let heading = path.hasSuffix("/queries/" + file) ? "-- name: \(file.dropLast(4))\n" : ""
        queries.append(Query(name: name, sql: heading + sql))
    }
    return queries
}

/// A raw string literal with more `#` than any sequence of them in the text, so that the text cannot end the literal or
/// start an interpolation. The closing quotes are not indented, so that the text keeps its indentation.
func literal(_ text: String) -> String {
    var longest = 0
    var run = 0
    for byte in text.utf8 {
        run = byte == UInt8(ascii: "#") ? run + 1 : 0
        longest = max(longest, run)
    }
    let marks = String(repeating: "#", count: longest + 1)
    return "\(marks)\"\"\"\n\(text)\n\"\"\"\(marks)"
}

func source(migrations: [Migration], definitions: [Definition], queries: [Query]) -> String {
    var text = "// Written by embed-files from the files in sql/. Change those.\n\nenum EmbeddedSQL {\n"
    text += "static let migrations: [(number: Int, name: String, sql: String)] = [\n"
    for migration in migrations {
        text += "(number: \(migration.number), name: \"\(migration.name)\", sql: \(literal(migration.sql))),\n"
    }
    text += "]\nstatic let definitions: [(schema: String, name: String, sql: String)] = [\n"
    for definition in definitions {
        text += "(schema: \"\(definition.schema)\", name: \"\(definition.name)\", sql: \(literal(definition.sql))),\n"
    }
    text += "]\n"
    for query in queries {
        text += "static let `\(query.name)` = \(literal(query.sql))\n"
    }
    return text + "}\n"
}

func embedSQL(_ directory: String, into output: String) throws {
    let migrations = try readMigrations(in: directory + "/tables")
    let definitions = try sortedByDependency(readDefinitions(in: directory + "/functions"))
    let queries = try readQueries(in: [directory, directory + "/queries"])
    try write(source(migrations: migrations, definitions: definitions, queries: queries), to: output)
}

func embedTexts(_ paths: [String], into output: String) throws {
    var text = "// Written by embed-files. Change the files.\n\nenum EmbeddedTexts {\n"
    text += "static let all: [String: String] = [\(paths.isEmpty ? ":" : "")\n"
    var names: Set<Substring> = []
    for path in paths.sorted() {
        let name = path.split(separator: "/").last ?? ""
        guard names.insert(name).inserted else {
            throw EmbeddingError(path: path, message: "another file has the same name; choose another one")
        }
        text += "\"\(name)\": \(literal(try read(path))),\n"
    }
    try write(text + "]\n}\n", to: output)
}

/// An unchanged file is not compiled again.
func write(_ text: String, to output: String) throws {
    if (try? String(contentsOfFile: output, encoding: .utf8)) != text {
        try text.write(toFile: output, atomically: true, encoding: .utf8)
    }
}

let arguments = Array(CommandLine.arguments.dropFirst())
do {
    switch arguments.first {
    case "sql" where arguments.count == 4:
        // See the plugin.
        try "\(Date())\n".write(toFile: arguments[3], atomically: false, encoding: .utf8)
        try embedSQL(arguments[1], into: arguments[2])
    case "texts" where arguments.count >= 2:
        try embedTexts(Array(arguments.dropFirst(2)), into: arguments[1])
    default:
        print("usage: embed-files sql SQL-DIRECTORY OUTPUT.swift LAST-RUN")
        print("       embed-files texts OUTPUT.swift FILE …")
        exit(64)
    }
} catch let error as EmbeddingError {
    print("\(error.path):1: error: \(error.message)")
    exit(1)
} catch {
    print("\(arguments[1]):1: error: \(error)")
    exit(1)
}
