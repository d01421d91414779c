import Foundation

/// File system calls that Foundation does not offer, or not with the guarantees needed here.
enum FileSystem {
    struct Kind {
        let isDirectory: Bool
        let isSymbolicLink: Bool
        let owner: uid_t
        let permissions: mode_t
    }

    /// - Returns: nil if nothing exists at the path. Does not follow a symbolic link at its end.
    static func kind(_ path: String) -> Kind? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return Kind(
            isDirectory: status.st_mode & S_IFMT == S_IFDIR,
            isSymbolicLink: status.st_mode & S_IFMT == S_IFLNK,
            owner: status.st_uid,
            permissions: status.st_mode & 0o7777
        )
    }

    static func exists(_ path: String) -> Bool {
        access(path, F_OK) == 0
    }

    static func isExecutable(_ path: String) -> Bool {
        access(path, X_OK) == 0
    }

    /// The path without symbolic links; nil if it does not exist.
    static func resolved(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    /// Creates a directory for one account only, unless it exists.
    static func makePrivateDirectory(_ path: String, for account: ServiceAccount) throws(PrivateServerError) {
        if mkdir(path, 0o700) != 0 && errno != EEXIST { throw failed("create", path) }
        // In /tmp another user may have created it first, or a link in its place.
        guard let kind = kind(path), kind.isDirectory else {
            throw PrivateServerError(
                .directoryUnusable,
                "\(path) is not a directory: remove it, or choose another data-dir"
            )
        }
        if kind.owner != account.user {
            guard account.isOther && kind.owner == getuid() else {
                throw PrivateServerError(
                    .directoryUnusable,
                    "\(path) belongs to another user: remove it, or choose another data-dir"
                )
            }
            if lchown(path, account.user, account.group) != 0 { throw failed("give away", path) }
        }
        if kind.permissions != 0o700, chmod(path, 0o700) != 0 { throw failed("set the permissions of", path) }
    }

    /// Creates the directory and its parents, unless they exist.
    static func makeDirectories(_ path: String) throws(PrivateServerError) {
        if mkdir(path, 0o777) == 0 { return }
        switch errno {
        case ENOENT:
            let above = (path as NSString).deletingLastPathComponent
            // mkdir can fail with ENOENT although the parent exists, for example in /proc.
            guard above != path, !exists(above) else { throw failed("create", path) }
            try makeDirectories(above)
            guard mkdir(path, 0o777) == 0 || errno == EEXIST else { throw failed("create", path) }
        case EEXIST:
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                throw PrivateServerError(
                    .directoryUnusable,
                    "\(path) is not a directory: remove it, or choose another data-dir"
                )
            }
        default: throw failed("create", path)
        }
    }

    /// Replaces the file atomically and durably: after a power loss it has the old or the new text.
    static func replace(_ path: String, with text: String, for account: ServiceAccount) throws(PrivateServerError) {
        let temporary = path + ".new"
        unlink(temporary)
        let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw failed("write", temporary) }
        defer { close(file) }
        var text = text
        let isWritten = text.withUTF8 { write(file, $0.baseAddress, $0.count) == $0.count }
        guard isWritten, !account.isOther || fchown(file, account.user, account.group) == 0, fsync(file) == 0 else {
            throw failed("write", temporary)
        }
        try move(temporary, to: path)
    }

    static func move(_ path: String, to target: String) throws(PrivateServerError) {
        guard rename(path, target) == 0 else { throw failed("rename to \(target)", path) }
        let directory = open((target as NSString).deletingLastPathComponent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return }
        fsync(directory)
        close(directory)
    }

    static func remove(_ path: String) throws(PrivateServerError) {
        guard kind(path) != nil else { return }
        do {
            try FileManager.default.removeItem(atPath: path)
        } catch {
            throw PrivateServerError(.directoryUnusable, "cannot remove \(path): \(error.localizedDescription)")
        }
    }

    /// At most the last `limit` bytes, as whole lines.
    static func tail(_ path: String, limit: Int = 2_000) -> String {
        guard let file = FileHandle(forReadingAtPath: path) else { return "" }
        defer { try? file.close() }
        guard let size = try? file.seekToEnd() else { return "" }
        let start = size > UInt64(limit) ? size - UInt64(limit) : 0
        guard (try? file.seek(toOffset: start)) != nil, let bytes = try? file.readToEnd() else { return "" }
        let text = String(decoding: bytes, as: UTF8.self)
        guard start > 0, let lineEnd = text.firstIndex(of: "\n") else { return text }
        return String(text[text.index(after: lineEnd)...])
    }

    static func failed(_ action: String, _ path: String) -> PrivateServerError {
        let reason = String(cString: strerror(errno))
        return PrivateServerError(
            .directoryUnusable,
            "cannot \(action) \(path): \(reason); check its permissions, or choose another data-dir"
        )
    }
}
