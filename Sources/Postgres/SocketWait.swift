import Foundation

/// The one place where this module waits for a socket. libpq's own waiting has no deadline.
package enum SocketWait {
    struct Events: OptionSet {
        let rawValue: Int16
        static let read = Events(rawValue: Int16(POLLIN))
        static let write = Events(rawValue: Int16(POLLOUT))
    }

    /// True when one of the events, an error or a hang-up is there; false when `deadline` came first. A deadline in
    /// the past still looks once.
    static func wait(_ socket: Int32, for events: Events, until deadline: ContinuousClock.Instant) -> Bool {
        var entry = pollfd(fd: socket, events: events.rawValue, revents: 0)
        while true {
            let ready = poll(&entry, 1, milliseconds(until: deadline))
            if ready > 0 { return true }
            // A failing poll (out of memory) is reported as ready: libpq then meets the error and words it.
            if ready < 0 && errno != EINTR { return true }
            if ContinuousClock.now >= deadline { return false }
        }
    }

    /// Rounded up, or the last millisecond of a wait would be spent turning in circles. At most a minute: `wait` asks
    /// again, and no deadline, however far, overflows.
    package static func milliseconds(until deadline: ContinuousClock.Instant) -> Int32 {
        let remaining = ContinuousClock.now.duration(to: deadline)
        guard remaining > .zero else { return 0 }
        guard remaining < .seconds(60) else { return 60_000 }
        let (seconds, attoseconds) = remaining.components
        return Int32(seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
