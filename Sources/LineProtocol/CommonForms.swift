import Glibc
import Usage

/// The two ways in which nearly every message is asked for, byte for byte: `CONSUME` and a user, for one message and
/// without a key, as a line or as an array. Recognised at one look, because finding the tokens of a request and holding
/// them against the grammar costs several times as much.
///
/// Any other spelling of the same, and whatever is incomplete or wrong, is not recognised here, and goes the general
/// way; what is recognised here the general way would decode alike.
struct CommonForms {
    /// What is recognised is within the limits, and permitted: the permission to count is asked for when it changes,
    /// and costs a request nothing.
    private let areAccepted: Bool

    init(limits: RequestLimits, permissions: Permissions) {
        let isPermitted = !permissions.isDisjoint(with: Verb.consume.permissions)
        areAccepted =
            isPermitted && limits.tokens >= 2 && limits.requestSizeBytes >= "CONSUME ".utf8.count + UserID.textLength
    }

    /// - Parameter bytes: all that has come from a request's first byte on.
    /// - Returns: the request's size and its user, or nil.
    @inline(__always)
    func recognise(_ bytes: UnsafeRawBufferPointer) -> (bytes: Int, user: UserID)? {
        guard areAccepted else { return nil }
        return CommonForms.user(in: bytes, after: "*2\r\n$7\r\nCONSUME\r\n$36\r\n")
            ?? CommonForms.user(in: bytes, after: "CONSUME ")
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
