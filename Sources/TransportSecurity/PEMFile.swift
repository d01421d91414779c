#if TLS
import Foundation
import NIOSSL

/// A file with a certificate or a key cannot be used. The text names the file and the error, and contains nothing of the file.
public struct TLSFileError: Error, Equatable, CustomStringConvertible {
    public let description: String

    package init(_ description: String) {
        self.description = description
    }
}

extension TLSFileError: LocalizedError {
    public var errorDescription: String? { description }
}

/// A file with certificates or a key, read once, so that the bytes that are checked are the ones that are used.
package struct PEMFile {
    private static let sizeMaximum = 1_048_576

    package let path: String
    package let bytes: [UInt8]
    /// Whether every user of the machine may read it.
    package let isReadableByOthers: Bool

    package init(_ path: String) throws(TLSFileError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw PEMFile.unreadable(path, errno) }
        defer { _ = close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw PEMFile.unreadable(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= PEMFile.sizeMaximum else {
            throw TLSFileError("\(path) is not a file in PEM form")
        }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        guard count == bytes.count else { throw PEMFile.unreadable(path, count < 0 ? errno : EIO) }
        self.path = path
        self.bytes = bytes
        isReadableByOthers = status.st_mode & S_IROTH != 0
    }

    private static func unreadable(_ path: String, _ number: Int32) -> TLSFileError {
        TLSFileError(
            "\(path) cannot be read: \(String(cString: strerror(number))); correct the path, or let this account read the file"
        )
    }

    /// All of the file's certificates, in its order.
    package func certificates() throws(TLSFileError) -> [NIOSSLCertificate] {
        guard let all = try? NIOSSLCertificate.fromPEMBytes(bytes), !all.isEmpty else {
            throw TLSFileError("\(path) has no certificate in PEM form (-----BEGIN CERTIFICATE-----)")
        }
        return all
    }

    package func privateKey() throws(TLSFileError) -> NIOSSLPrivateKey {
        // Without a callback the library would ask for a passphrase on the terminal.
        let key = try? NIOSSLPrivateKey(bytes: bytes, format: .pem) { $0([UInt8]()) }
        guard let key else {
            throw TLSFileError("\(path) has no private key in PEM form, without a passphrase")
        }
        return key
    }
}
#endif
