/// A file of the pages, which browsers cache and revalidate.
struct Asset: Sendable {
    let path: String
    let body: TaggedBody

    private init(_ path: String, _ mediaType: String) {
        self.path = path
        body = TaggedBody(EmbeddedTexts[path].utf8, mediaType: mediaType, caching: "no-cache")
    }

    static let all = [
        Asset("style.css", "text/css; charset=utf-8"),
        Asset("script.js", "text/javascript; charset=utf-8"),
        Asset("icon.svg", "image/svg+xml"),
    ]
}
