import Foundation

/// An open directory whose files the service reads and replaces, while its owner may change them.
///
/// The service may be root, and the owner PostgreSQL's account, which must not read or change through the service what
/// it could not by itself. So links are not followed, names are looked up in the directory that was opened, and only
/// regular files that the owner may read are read: neither a pipe, which would block, nor a hard link to another
/// user's secret.
struct AccountDirectory: ~Copyable {
    /// The most bytes of a file; longer ones are refused. The longest one, postgresql.conf, has 30 KB.
    static let fileBytesMaximum = 1 << 20

    private let path: String
    private let owner: uid_t
    private let descriptor: Int32

    /// - Throws: `.directoryUnusable` if the directory cannot be opened.
    init(_ path: String) throws(PrivateServerError) {
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileSystem.failed("open", path) }
        var status = stat()
        fstat(descriptor, &status)
        (self.path, owner) = (path, status.st_uid)
    }

    deinit {
        close(descriptor)
    }

    /// Reads a file.
    ///
    /// - Returns: nil if there is no such file.
    /// - Throws: `.directoryUnusable` if the file cannot be read or is not UTF-8.
    func text(of name: String) throws(PrivateServerError) -> String? {
        let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        if file < 0, errno == ENOENT { return nil }
        guard file >= 0 || errno == ELOOP else { throw FileSystem.failed("read", path + "/" + name) }
        defer { if file >= 0 { close(file) } }
        var status = stat()
        guard file >= 0, fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_uid == owner || status.st_mode & S_IROTH != 0, status.st_size <= AccountDirectory.fileBytesMaximum
        else {
            throw PrivateServerError(
                .directoryUnusable,
                "\(path)/\(name) is not a regular file that its directory's owner may read; restore it, or choose "
                    + "another data-dir"
            )
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = read(file, &bytes, bytes.count)
        guard count >= 0, let text = String(validating: bytes[..<count], as: UTF8.self) else {
            throw FileSystem.failed("read", path + "/" + name)
        }
        return text
    }

    /// Replaces a file atomically and durably: after a power loss, it has the old or the new text.
    ///
    /// - Throws: `.directoryUnusable` if it cannot be written.
    func replace(_ name: String, with text: String, for account: ServiceAccount) throws(PrivateServerError) {
        let temporary = name + ".new"
        unlinkat(descriptor, temporary, 0)
        let file = openat(descriptor, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw FileSystem.failed("write", path + "/" + temporary) }
        defer { close(file) }
        var text = text
        let isWritten = text.withUTF8 { write(file, $0.baseAddress, $0.count) == $0.count }
        guard isWritten, !account.isOther || fchown(file, account.user, account.group) == 0, fsync(file) == 0,
            renameat(descriptor, temporary, descriptor, name) == 0
        else { throw FileSystem.failed("write", path + "/" + name) }
        fsync(descriptor)
    }

    /// Removes a file, or a link in its place, if there is one.
    ///
    /// - Throws: `.directoryUnusable` if it cannot be removed.
    func remove(_ name: String) throws(PrivateServerError) {
        guard unlinkat(descriptor, name, 0) == 0 || errno == ENOENT else {
            throw FileSystem.failed("remove", path + "/" + name)
        }
    }
}
