/// A file of the pages, which browsers cache and revalidate.
struct Asset: Sendable {
    let path: String
    let body: TaggedBody

    private init(_ path: String, _ mediaType: String, _ bytes: [UInt8]) {
        self.path = path
        body = TaggedBody(bytes, mediaType: mediaType, caching: "no-cache")
    }

    static let all = [
        Asset("style.css", "text/css; charset=utf-8", PackageResources.style_css),
        Asset("script.js", "text/javascript; charset=utf-8", PackageResources.script_js),
        Asset("icon.svg", "image/svg+xml", PackageResources.icon_svg),
    ]
}
