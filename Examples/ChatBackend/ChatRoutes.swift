import Foundation
import HeadroomClient
import Hummingbird
import Logging

/// The requests of the page. A product takes the user from a session instead of the path.
struct ChatRoutes: Sendable {
    let headroom: HeadroomClient
    /// One at least. The first is that of messages that name none.
    let models: [ModelChoice]
    let store: StoreWebhook?
    /// Nil without a secret: then they are refused.
    let notifications: NotificationInbox?
    let people: [Person]
    let offlineMessage: String
    /// For the usage of a page.
    let deadline: Duration
    let logger: Logger

    /// What the page starts with. `usage` is absent, and `offline` has the sentence, while Headroom is unreachable.
    private struct Page: ResponseEncodable {
        var name: String
        var messages: [Message]
        var isAnswering: Bool
        var models: [ModelChoice]
        var usage: UsageObject?
        var offline: String?
        var canSubscribe: Bool
    }

    private struct NewMessage: Decodable {
        var id: UUID
        var text: String
        var model: String?
    }

    private struct Offline: Encodable {
        var message: String
    }

    func router() throws -> Router<ChatContext> {
        let conversations = Conversations()
        let messages = MessageHandler(headroom: headroom, models: models, conversations: conversations, logger: logger)
        let reachability = Reachability(headroom)
        let names = Dictionary(people.map { ($0.user, $0.name) }, uniquingKeysWith: { first, _ in first })
        let folder = Bundle.module.bundlePath + "/Page"
        let page = try String(contentsOfFile: folder + "/index.html", encoding: .utf8)

        let router = Router(context: ChatContext.self)
        router.add(middleware: FileMiddleware(folder, urlBasePath: "/assets", cacheControl: .pageFiles))
        router.get("/") { _, _ in HTML(text: Person.page(of: people)) }
        router.get("/chat/{user}") { _, context in
            _ = try context.user
            return HTML(text: page)
        }
        router.get("/users/{user}") { request, context in
            let user = try context.user
            let headroom = headroom.answering(in: request.language, timeZone: request.timeZone)
            // Before the usage, which then has the effect of an answer that has just ended.
            let isAnswering = await conversations.isAnswering(user)
            let usage = try? await headroom.usage(of: user, with: models, deadline: deadline)
            return Page(
                name: names[user] ?? "You",
                messages: await conversations.messages(of: user),
                isAnswering: isAnswering,
                models: models,
                usage: usage,
                offline: usage == nil ? offlineMessage : nil,
                canSubscribe: store != nil
            )
        }
        router.get("/users/{user}/changes") { request, context in
            let user = try context.user
            let headroom = headroom.answering(in: request.language, timeZone: request.timeZone)
            return request.eventStream { events in await followChanges(of: user, headroom, reachability, events) }
        }
        router.post("/users/{user}/messages") { request, context in
            let user = try context.user
            var request = request
            let body = try await request.decodeJSON(NewMessage.self, context)
            let text = body.text.trimmingCharacters(in: .whitespacesAndNewlines)
            guard (1...4_000).contains(text.count) else { throw Problem(.badRequest, "text has 1 to 4,000 characters") }
            guard let model = body.model.map({ name in models.first { $0.name?.text == name } }) ?? models[0] else {
                throw Problem(.badRequest, "model is one of those in GET /users/{user}")
            }
            let message = Message(id: body.id.uuidString.lowercased(), role: .user, text: text)
            let handler = messages.answering(in: request.language, timeZone: request.timeZone)
            return request.eventStream { events in await handler.answer(message, of: user, with: model, events) }
        }
        router.post("/users/{user}/subscription") { request, context in
            let user = try context.user
            var request = request
            let change = try await request.decodeJSON(SubscriptionChange.self, context)
            guard let store else { throw Problem(.badGateway, "start the chat with --webhook to subscribe") }
            let usage = try? await headroom.usage(of: user, deadline: deadline)
            if let event = try change.event(for: user, usage) { try await store.post(event, logger) }
            return HTTPResponse.Status.noContent
        }
        router.post("/notifications") { request, context in
            guard let notifications else { throw Problem(.notFound, "set CHAT_NOTIFICATIONS_SECRET to receive these") }
            let body = try await request.body.collect(upTo: context.maxUploadSize)
            try await notifications.receive(Data(buffer: body), request.headers)
            return HTTPResponse.Status.noContent
        }
        router.get("/notifications") { _, _ in
            NotificationList(notifications: await notifications?.newest ?? [])
        }
        return router
    }

    /// Sends the usage whenever it changes, and whether Headroom is reachable, until the page is closed.
    ///
    /// - Parameter headroom: answers in the user's language, which messages about changes are not in.
    private func followChanges(
        of user: UserID,
        _ headroom: HeadroomClient,
        _ reachability: Reachability,
        _ events: EventStream
    ) async {
        await withTaskGroup { tasks in
            tasks.addTask {
                for await status in headroom.changes(of: user) {
                    let usage = try? await headroom.usage(of: user, with: models)
                    events.send("usage", usage ?? UsageObject(status: status, language: nil))
                }
            }
            tasks.addTask {
                for await isReachable in reachability.changes() {
                    events.send(isReachable ? "online" : "offline", Offline(message: offlineMessage))
                }
            }
        }
    }
}

struct ChatContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    var maxUploadSize: Int { 32_768 }
    var responseEncoder: JSONEncoder { .snakeCase }

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
    }

    /// The user in the path.
    var user: UserID {
        get throws {
            guard let user = parameters.get("user").flatMap({ UserID($0) }) else {
                throw Problem(.notFound, "a user is a UUID, such as 7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11")
            }
            return user
        }
    }
}

extension Request {
    /// The languages in which Headroom ships words. Add those of which you have inserted rows.
    private static let languages = Set(LanguageTag.shipped.map(\.text))

    /// That of the browser. Nil if it is unknown here: dates are then those of the plan's time zone, or UTC.
    fileprivate var timeZone: CivilTimeZone? { uri.queryParameters["tz"].flatMap { CivilTimeZone($0) } }

    /// The language of those above that the browser's user prefers; browsers send the most preferred one first. Without
    /// one it is that of the page's own texts.
    fileprivate var language: LanguageTag {
        let ranges = (headers[.acceptLanguage] ?? "").split { $0 == "," || $0 == " " }
        let tags = ranges.lazy.compactMap { range in LanguageTag(range.prefix { $0 != ";" }) }
        return tags.first { tag in Request.languages.contains(String(tag.text.prefix { $0 != "-" })) } ?? .english
    }

    /// - Throws: `Problem` with 415 or 400. A form of another site cannot send this content type, so it cannot post.
    fileprivate mutating func decodeJSON<Body: Decodable>(
        _ type: Body.Type,
        _ context: ChatContext
    ) async throws -> Body {
        guard headers[.contentType]?.hasPrefix("application/json") == true else {
            throw Problem(.unsupportedMediaType, "Content-Type must be application/json")
        }
        let body = try await collectBody(upTo: context.maxUploadSize)
        do {
            return try JSONDecoder().decode(type, from: Data(buffer: body))
        } catch {
            throw Problem(.badRequest, "the body does not have the documented fields")
        }
    }
}
