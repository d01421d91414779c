import HeadroomClient
import Hummingbird
import NIOCore
import Synchronization

/// `GET /users/{user}/changes`: what changes while the page is open, as server-sent events.
final class ChangeRoutes: Sendable {
    /// Pages open at a time. Each keeps a connection.
    static let streamsMaximum = 512

    private let states: PageStates
    private let offlineWords: String
    private let open = Mutex(0)

    init(_ states: PageStates, offlineWords: String) {
        self.states = states
        self.offlineWords = offlineWords
    }

    func add(to router: Router<ChatContext>) {
        router.get("/users/{user}/changes") { [self] request, context -> Response in
            guard let user = context.user else { throw Problem.noUser }
            guard let place = Place(self) else { throw Problem.tooMany("too many pages are open; close some") }
            return request.answer(beginning: ServerSentEvent.retry) { [states, offlineWords] in
                PageEvents(states: states.follow(user), offlineWords: offlineWords, place: place)
            }
        }
    }

    /// One of the streams that may be open; given back with the response that holds it, also with one never written.
    fileprivate final class Place: Sendable {
        private let routes: ChangeRoutes

        init?(_ routes: ChangeRoutes) {
            let isFree = routes.open.withLock { open in
                guard open < ChangeRoutes.streamsMaximum else { return false }
                open += 1
                return true
            }
            guard isFree else { return nil }
            self.routes = routes
        }

        deinit {
            routes.open.withLock { $0 -= 1 }
        }
    }
}

/// What to write when the state of a page changes: what of it is news.
private struct PageEvents: AsyncSequence {
    let states: AsyncStream<PageState>
    let offlineWords: String
    let place: ChangeRoutes.Place

    struct Offline: Encodable {
        var message: String
    }

    struct Online: Encodable {}

    struct AsyncIterator: AsyncIteratorProtocol {
        let events: PageEvents
        var states: AsyncStream<PageState>.AsyncIterator
        var told = PageState()

        mutating func next() async -> ByteBuffer? {
            while let state = await states.next() {
                defer { told = state }
                let news = events.news(in: state, since: told)
                if news.readableBytes > 0 { return news }
            }
            return nil
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(events: self, states: states.makeAsyncIterator())
    }

    private func news(in state: PageState, since told: PageState) -> ByteBuffer {
        var bytes = ByteBuffer()
        if let isReachable = state.isReachable, isReachable != told.isReachable {
            let event =
                isReachable
                ? ServerSentEvent("online", Online()) : ServerSentEvent("offline", Offline(message: offlineWords))
            bytes.writeImmutableBuffer(event.bytes)
        }
        if let usage = state.usage, usage != told.usage {
            bytes.writeImmutableBuffer(ServerSentEvent("usage", UsageObject(usage)).bytes)
        }
        if state.comments != told.comments { bytes.writeImmutableBuffer(ServerSentEvent.comment) }
        return bytes
    }
}
