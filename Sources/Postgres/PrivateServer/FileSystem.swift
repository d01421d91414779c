import Foundation

/// File system calls that Foundation does not offer, or not with the guarantees needed here.
enum FileSystem {
    struct Kind {
        let isDirectory: Bool
        let isSymbolicLink: Bool
        let owner: uid_t
    }

    /// - Returns: nil if nothing exists at the path. A symbolic link at its end is not followed.
    static func kind(_ path: String) -> Kind? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return Kind(
            isDirectory: status.st_mode & S_IFMT == S_IFDIR,
            isSymbolicLink: status.st_mode & S_IFMT == S_IFLNK,
            owner: status.st_uid
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
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        var status = stat()
        guard directory >= 0, fstat(directory, &status) == 0 else {
            throw PrivateServerError(
                .directoryUnusable,
                "\(path) is not a directory that can be opened: remove it, or choose another data-dir"
            )
        }
        defer { close(directory) }
        if status.st_uid != account.user {
            guard account.isOther && status.st_uid == getuid() else {
                throw PrivateServerError(
                    .directoryUnusable,
                    "\(path) belongs to another user: remove it, or choose another data-dir"
                )
            }
            if fchown(directory, account.user, account.group) != 0 { throw failed("give away", path) }
        }
        if status.st_mode & 0o7777 != 0o700, fchmod(directory, 0o700) != 0 {
            throw failed("set the permissions of", path)
        }
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

    static func move(_ path: String, to target: String) throws(PrivateServerError) {
        guard rename(path, target) == 0 else { throw failed("rename to \(target)", path) }
        let directory = open((target as NSString).deletingLastPathComponent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return }
        fsync(directory)
        close(directory)
    }

    /// Removes a directory and its content, if it exists. This runs as the directory's owner, who may put links into it
    /// meanwhile.
    static func removeDirectory(_ path: String) async throws {
        guard let kind = kind(path), rmdir(path) != 0 else { return }
        let owner = kind.owner == geteuid() ? .current() : try ServiceAccount.choose(clusterOwner: kind.owner)
        // The owner may not remove the directory itself.
        let outcome = try await ProgramRunner(account: owner).run("/bin/rm", ["-rf", "--", path])
        guard rmdir(path) == 0 || errno == ENOENT else {
            throw PrivateServerError(.directoryUnusable, "cannot remove \(path); remove it: \(outcome.output)")
        }
    }

    /// Returns at most the last `limit` bytes, as whole lines.
    static func tail(_ path: String, limit: Int = 2_000) -> String {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
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
