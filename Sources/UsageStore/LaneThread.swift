import Foundation

/// libpq blocks, so it gets threads of its own: never an event loop, never the cooperative pool.
func onLaneThread(named name: String, _ work: @escaping @Sendable () -> Void) {
    let thread = Thread(block: work)
    thread.name = name
    thread.start()
}
