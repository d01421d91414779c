#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Writes text to standard output or standard error. Foundation's FileHandle ends the process if that fails, for
/// instance if the reader of a pipe has ended or a disk is full.
package enum DescriptorOutput {
    /// - Returns: 0 if all of it was written, otherwise the error number.
    package static func write(_ text: String, to descriptor: Int32) -> Int32 {
        var text = text
        return text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while let start = rest.baseAddress, !rest.isEmpty {
                let count = systemWrite(descriptor, start, rest.count)
                if count >= 0 {
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if errno == EAGAIN {
                    // Another process has made the shared terminal or pipe non-blocking.
                    var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&wait, 1, -1)
                } else if errno != EINTR {
                    return errno
                }
            }
            return 0
        }
    }

    private static func systemWrite(_ descriptor: Int32, _ start: UnsafeRawPointer, _ count: Int) -> Int {
        #if canImport(Glibc)
        Glibc.write(descriptor, start, count)
        #elseif canImport(Musl)
        Musl.write(descriptor, start, count)
        #else
        Darwin.write(descriptor, start, count)
        #endif
    }
}
