import Usage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Decodes `CONSUME <user>`, the most frequent request by far, by comparing bytes. Splitting and parsing it as
/// `RequestDecoder` does with every other request costs several times as much, with the same result.
///
/// Only the exact spelling matches, in upper case and with CRLF, as a line or as an array. `RequestDecoder` decodes any
/// other spelling and reports errors.
struct PlainConsumeDecoder {
    /// Whether the peer may count, and the request is within the limits. Both are checked when they change, not per
    /// request.
    private let isEnabled: Bool

    init(limits: RequestLimits, permissions: Permissions) {
        let isPermitted = !permissions.isDisjoint(with: Verb.consume.permissions)
        isEnabled =
            isPermitted && limits.tokensMaximum >= 2 && limits.bytesMaximum >= "CONSUME ".utf8.count + UserID.textLength
    }

    /// - Parameter bytes: received bytes, beginning with a request's first one.
    /// - Returns: the request's size and its user, or nil.
    @inline(__always)
    func decode(_ bytes: UnsafeRawBufferPointer) -> (bytes: Int, user: UserID)? {
        guard isEnabled else { return nil }
        return PlainConsumeDecoder.user(in: bytes, after: "*2\r\n$7\r\nCONSUME\r\n$36\r\n")
            ?? PlainConsumeDecoder.user(in: bytes, after: "CONSUME ")
    }

    @inline(__always)
    private static func user(
        in bytes: UnsafeRawBufferPointer,
        after head: StaticString
    ) -> (bytes: Int, user: UserID)? {
        let start = head.utf8CodeUnitCount
        let end = start + UserID.textLength
        guard bytes.count >= end + 2, let base = bytes.baseAddress, memcmp(base, head.utf8Start, start) == 0,
            bytes[end] == UInt8(ascii: "\r"), bytes[end + 1] == UInt8(ascii: "\n"),
            let user = UserID(UnsafeRawBufferPointer(start: base + start, count: UserID.textLength))
        else { return nil }
        return (end + 2, user)
    }
}
