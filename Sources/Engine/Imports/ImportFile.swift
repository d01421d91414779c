#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A file that is read more than once. A pipe, which cannot be read twice, is copied to a temporary file without a
/// name, which ends with the process. There may be one reader at a time, because the descriptor has one position.
public final class ImportFile {
    public struct Failure: Error, CustomStringConvertible {
        public var description: String
    }

    private static let pieceBytes = 1 << 20

    /// The name on the command line; `standard input` for `-`.
    public let name: String
    public let byteCount: Int
    private let descriptor: Int32
    private let status: stat

    /// - Parameter path: the path; `-` is standard input.
    public init(path: String) throws(Failure) {
        name = path == "-" ? "standard input" : path
        var descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ImportFile.failure("\(name) cannot be opened", errno) }
        var status = stat()
        fstat(descriptor, &status)
        if status.st_mode & S_IFMT != S_IFREG {
            let copy = try ImportFile.copy(descriptor, name)
            close(descriptor)
            descriptor = copy
            fstat(descriptor, &status)
        }
        self.descriptor = descriptor
        self.status = status
        byteCount = Int(status.st_size)
    }

    deinit {
        close(descriptor)
    }

    /// Reads the records from the beginning.
    ///
    /// - Parameter whenRead: called with each piece of the file, before it is split.
    public func records(_ whenRead: @escaping (UnsafeRawBufferPointer) -> Void = { _ in }) throws(Failure) -> CSVReader
    {
        guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw ImportFile.failure("\(name) cannot be read", errno) }
        return CSVReader { [self] in
            let piece = try ImportFile.piece(descriptor, name)
            try requireUnchanged()
            piece.withUnsafeBytes(whenRead)
            return piece
        }
    }

    /// Whether a path leads to this file.
    public func isAt(_ path: String) -> Bool {
        var other = stat()
        guard stat(path, &other) == 0 else { return false }
        return other.st_dev == status.st_dev && other.st_ino == status.st_ino
    }

    /// Checks that the file has not changed, because one reading counts and checks the rows that another one imports.
    private func requireUnchanged() throws(Failure) {
        var now = stat()
        fstat(descriptor, &now)
        let (before, after) = (status.modified, now.modified)
        guard now.st_size == status.st_size, after.tv_sec == before.tv_sec, after.tv_nsec == before.tv_nsec else {
            throw Failure(description: "\(name) has changed while it was read; import a copy that nobody writes to")
        }
    }

    private static func copy(_ source: Int32, _ name: String) throws(Failure) -> Int32 {
        guard let file = tmpfile() else { throw failure("a temporary file cannot be created", errno) }
        defer { fclose(file) }
        while true {
            let piece = try piece(source, name)
            guard !piece.isEmpty else { break }
            guard fwrite(piece, 1, piece.count, file) == piece.count else {
                throw failure("the temporary file cannot be written", errno)
            }
        }
        guard fflush(file) == 0 else { throw failure("the temporary file cannot be written", errno) }
        let descriptor = dup(fileno(file))
        guard descriptor >= 0 else { throw failure("the temporary file cannot be read", errno) }
        return descriptor
    }

    /// Reads a piece; empty at the end.
    private static func piece(_ descriptor: Int32, _ name: String) throws(Failure) -> [UInt8] {
        var number: Int32 = 0
        let piece = [UInt8](unsafeUninitializedCapacity: pieceBytes) { bytes, count in
            var done = -1
            repeat { done = read(descriptor, bytes.baseAddress, bytes.count) } while done < 0 && errno == EINTR
            if done < 0 { number = errno }
            count = max(0, done)
        }
        guard number == 0 else { throw failure("\(name) cannot be read", number) }
        return piece
    }

    private static func failure(_ text: String, _ number: Int32) -> Failure {
        Failure(description: "\(text): \(String(cString: strerror(number)))")
    }
}

extension stat {
    fileprivate var modified: timespec {
        #if canImport(Darwin)
        st_mtimespec
        #else
        st_mtim
        #endif
    }
}
