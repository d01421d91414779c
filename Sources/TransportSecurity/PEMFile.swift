#if TLS
import Foundation
import NIOSSL

/// A certificate or key file cannot be used. The description names the file and the error, and never quotes the file's
/// contents, because they may be a key.
public struct TLSFileError: Error, Equatable, CustomStringConvertible {
    public let description: String

    package init(_ description: String) {
        self.description = description
    }
}

extension TLSFileError: LocalizedError {
    public var errorDescription: String? { description }
}

/// A PEM file with certificates or a private key. It is read once, so it cannot change between the check and the use.
package struct PEMFile {
    private static let fileBytesMaximum = 1_048_576

    package let path: String
    package let bytes: [UInt8]
    /// Whether the file is world-readable: every user of the machine may read it.
    package let isReadableByOthers: Bool

    package init(_ path: String) throws(TLSFileError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw PEMFile.unreadable(path, errno) }
        defer { _ = close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw PEMFile.unreadable(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw TLSFileError("\(path) is not a regular file; name a file with a certificate or a key in PEM form")
        }
        guard status.st_size <= PEMFile.fileBytesMaximum else {
            throw TLSFileError(
                "\(path) is larger than any certificate or key; name a file with a certificate or a key in PEM form"
            )
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        guard count == bytes.count else { throw PEMFile.unreadable(path, count < 0 ? errno : EIO) }
        self.path = path
        self.bytes = bytes
        isReadableByOthers = status.st_mode & S_IROTH != 0
    }

    private static func unreadable(_ path: String, _ code: Int32) -> TLSFileError {
        let reason = String(cString: strerror(code))
        return TLSFileError("\(path) cannot be read: \(reason); correct the path, or let this account read the file")
    }

    /// All certificates in the file, in the file's order.
    package func certificates() throws(TLSFileError) -> [NIOSSLCertificate] {
        guard let all = try? NIOSSLCertificate.fromPEMBytes(bytes), !all.isEmpty else {
            throw TLSFileError(
                "\(path) has no valid certificate in PEM form; name a file with one, which begins with "
                    + "-----BEGIN CERTIFICATE-----"
            )
        }
        return all
    }

    /// The file's private key, which must not be encrypted.
    package func privateKey() throws(TLSFileError) -> NIOSSLPrivateKey {
        // Without a callback the library would ask for a passphrase on the terminal.
        let key = try? NIOSSLPrivateKey(bytes: bytes, format: .pem) { $0([UInt8]()) }
        guard let key else {
            throw TLSFileError(
                "\(path) has no valid private key in PEM form, or the key has a passphrase; name another file, or remove "
                    + "the passphrase (openssl pkey -in FILE -out NEW_FILE)"
            )
        }
        return key
    }
}
#endif
