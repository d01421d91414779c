import Foundation

/// Waits for a socket until a deadline. libpq's own functions wait without one.
package enum SocketWait {
    struct Events: OptionSet {
        let rawValue: Int16
        static let read = Events(rawValue: Int16(POLLIN))
        static let write = Events(rawValue: Int16(POLLOUT))
    }

    /// - Returns: true on an event, an error or a hang-up; false at the deadline. A deadline in the past checks once.
    static func wait(_ socket: Int32, for events: Events, until deadline: ContinuousClock.Instant) -> Bool {
        var entry = pollfd(fd: socket, events: events.rawValue, revents: 0)
        while true {
            let ready = poll(&entry, 1, milliseconds(until: deadline))
            if ready > 0 { return true }
            // A failed poll (out of memory) counts as ready: libpq then reports the error.
            if ready < 0 && errno != EINTR { return true }
            if ContinuousClock.now >= deadline { return false }
        }
    }

    /// Returns the time until the deadline, rounded up, because 0 would make the last millisecond a busy loop. It is at
    /// most a minute, so that no deadline overflows; `wait` repeats.
    package static func milliseconds(until deadline: ContinuousClock.Instant) -> Int32 {
        let remaining = ContinuousClock.now.duration(to: deadline)
        guard remaining > .zero else { return 0 }
        guard remaining < .seconds(60) else { return 60_000 }
        let (seconds, attoseconds) = remaining.components
        return Int32(seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
