import Foundation

/// The files of the page: those in this program, or, for who changes them, those in a folder.
struct PageFiles: Sendable {
    private let directory: String?
    private let embedded: [String: Asset]

    /// Each file of Page/. A test holds the list against the folder.
    static let contents: [String: [UInt8]] = [
        "index.html": PackageResources.index_html,
        "style.css": PackageResources.style_css,
        "app.js": PackageResources.app_js,
    ]

    init(directory: String?) {
        self.directory = directory
        embedded = Dictionary(
            uniqueKeysWithValues: PageFiles.contents.map { ($0.key, Asset(name: $0.key, data: Data($0.value))) }
        )
    }

    /// - Parameter name: of a file, not of a path.
    func asset(_ name: String) -> Asset? {
        guard let directory else { return embedded[name] }
        guard !name.contains("/"), !name.hasPrefix("."), !name.contains("\0") else { return nil }
        return FileManager.default.contents(atPath: "\(directory)/\(name)").map { Asset(name: name, data: $0) }
    }
}
