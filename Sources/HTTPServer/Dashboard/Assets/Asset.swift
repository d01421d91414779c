import Crypto

/// A file of ours that browsers keep, and ask about by its ETag.
struct Asset: Sendable {
    let path: String
    let mediaType: String
    let text: String
    /// Of the text itself: a new version of the service has a new one.
    let entityTag: String

    private init(_ path: String, _ mediaType: String, _ text: String) {
        self.path = path
        self.mediaType = mediaType
        self.text = text
        entityTag = "\"\(RandomName.hexadecimal(SHA256.hash(data: Array(text.utf8)).prefix(16)))\""
    }

    static let all = [
        Asset("style.css", "text/css; charset=utf-8", Stylesheet.text),
        Asset("script.js", "text/javascript; charset=utf-8", Script.text),
        Asset("icon.svg", "image/svg+xml", icon),
    ]

    /// As in the frame; a browser's tab has no stylesheet of ours.
    private static let icon = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24">
        <path fill="#2a8f89" fill-opacity=".35" d="M12 2a10 10 0 0 1 10 10v8a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2v-8A10 10 0 0 1 12 2Z"/>
        <path fill="#2a8f89" d="M5 14h14v5H5Z"/>
        </svg>

        """
}
