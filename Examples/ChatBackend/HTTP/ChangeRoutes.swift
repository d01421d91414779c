import HeadroomClient
import Hummingbird
import NIOCore

/// `GET /users/{user}/changes`: what changes while the page is open, as server-sent events.
struct ChangeRoutes {
    /// Pages open at a time. Each keeps a connection.
    static let streamsMaximum = 512

    let states: PageStates
    let offlineWords: String
    let places = Places(maximum: streamsMaximum)

    func add(to router: Router<ChatContext>) {
        router.get("/users/{user}/changes") { [states, news, places] _, context -> Response in
            guard let user = context.user else { throw Problem.noUser }
            guard let place = places.take() else { throw Problem.tooMany("too many pages are open; close some") }
            return context.answer(beginning: ServerSentEvent.retry) {
                states.follow(user)
            } bytes: { state, told in
                withExtendedLifetime(place) { news.bytes(of: state, since: told ?? PageState()) }
            }
        }
    }

    private var news: News { News(offlineWords: offlineWords) }
}

/// What of a page's state is news to it.
private struct News {
    let offlineWords: String

    private struct Offline: Encodable {
        var message: String
    }

    private struct Online: Encodable {}

    func bytes(of state: PageState, since told: PageState) -> ByteBuffer {
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
