import HeadroomClient
import Synchronization

/// What an open page is to know.
struct PageState: Sendable {
    var usage: UsageStatus?
    var isReachable: Bool?
    /// Counts the moments at which something is to be said, if only that we are still here.
    var comments = 0
}

/// Brings what is followed for a page into one sequence. Who reads slowly gets the newest state whole, so that nothing that
/// is still so is missed, and nothing piles up.
struct PageStates: Sendable {
    let headroom: HeadroomClient
    let reachability: Reachability

    private static let commentInterval = Duration.seconds(15)

    /// Ends when the chat shuts down, and its work when nobody reads any more.
    func follow(_ user: UserID) -> BeingTold<PageState> {
        BeingTold(keeping: .bufferingNewest(1)) { tell in
            let newest = Newest(tell)
            await withTaskGroup { tasks in
                tasks.addTask {
                    // Where it ends before the chat does, the log says why, and the page keeps what it has.
                    for await status in headroom.changes(of: user) { newest.update { $0.usage = status } }
                }
                tasks.addTask {
                    while (try? await Task.sleep(for: PageStates.commentInterval)) != nil {
                        newest.update { $0.comments += 1 }
                    }
                }
                for await isReachable in reachability.changes() { newest.update { $0.isReachable = isReachable } }
                tasks.cancelAll()
            }
        }
    }

    private final class Newest: Sendable {
        private let state = Mutex(PageState())
        private let tell: AsyncStream<PageState>.Continuation

        init(_ tell: AsyncStream<PageState>.Continuation) {
            self.tell = tell
        }

        func update(_ change: (inout PageState) -> Void) {
            // Yielded within the lock, so that an older state never comes after a newer one.
            state.withLock { state in
                change(&state)
                tell.yield(state)
            }
        }
    }
}
