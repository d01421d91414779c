import Foundation

extension PrivateServer {
    nonisolated func running(
        _ directory: DataDirectory,
        _ programs: PostgresPrograms,
        wasAdopted: Bool
    ) -> Running {
        let conninfo = conninfo(directory, database: PrivateServer.databaseName)
        let path = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        let isOnPath = path.contains { FileSystem.isExecutable($0 + "/psql") }
        let psql = isOnPath ? "psql" : PrivateServer.shellQuoted(programs.directory + "/psql")
        return Running(
            conninfo: conninfo,
            psqlCommand: "\(psql) \(PrivateServer.shellQuoted(conninfo))",
            logFile: directory.log,
            wasAdopted: wasAdopted
        )
    }

    /// Returns the connection string. The port is part of the socket's name, and explicit because PGPORT would apply
    /// otherwise.
    nonisolated func conninfo(_ directory: DataDirectory, database: String) -> String {
        let host = PrivateServer.conninfoQuoted(directory.socketDirectory)
        return "host=\(host) port=5432 user=\(PrivateServer.userName) dbname=\(database)"
    }

    static func conninfoQuoted(_ value: String) -> String {
        let isPlain = value.utf8.allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "'") && $0 != UInt8(ascii: "\\") }
        guard !isPlain else { return value }
        return "'" + value.map { $0 == "'" || $0 == "\\" ? "\\\($0)" : String($0) }.joined() + "'"
    }

    static func shellQuoted(_ value: String) -> String {
        "'" + value.map { $0 == "'" ? "'\\''" : String($0) }.joined() + "'"
    }
}
