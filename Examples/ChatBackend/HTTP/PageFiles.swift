import Foundation

/// The files of the page: those in this program, or, for who changes them, those in a folder.
struct PageFiles: Sendable {
    private let directory: String?
    private let embedded: [String: Asset]

    /// Each file of Page/. A test holds the list against the folder.
    static let contents: [String: [UInt8]] = [
        "changes.js": PackageResources.changes_js,
        "chat.js": PackageResources.chat_js,
        "composerView.js": PackageResources.composerView_js,
        "connectionView.js": PackageResources.connectionView_js,
        "conversationView.js": PackageResources.conversationView_js,
        "counter.js": PackageResources.counter_js,
        "dates.js": PackageResources.dates_js,
        "delivery.js": PackageResources.delivery_js,
        "dialogs.js": PackageResources.dialogs_js,
        "element.js": PackageResources.element_js,
        "eventReader.js": PackageResources.eventReader_js,
        "gateView.js": PackageResources.gateView_js,
        "icon.svg": PackageResources.icon_svg,
        "index.html": PackageResources.index_html,
        "indicatorView.js": PackageResources.indicatorView_js,
        "keeping.js": PackageResources.keeping_js,
        "liveUsage.js": PackageResources.liveUsage_js,
        "main.js": PackageResources.main_js,
        "noticeView.js": PackageResources.noticeView_js,
        "outbox.js": PackageResources.outbox_js,
        "people.js": PackageResources.people_js,
        "plans.js": PackageResources.plans_js,
        "ring.js": PackageResources.ring_js,
        "screenWords.js": PackageResources.screenWords_js,
        "sending.js": PackageResources.sending_js,
        "service.js": PackageResources.service_js,
        "settingsView.js": PackageResources.settingsView_js,
        "sheetView.js": PackageResources.sheetView_js,
        "store.js": PackageResources.store_js,
        "style.css": PackageResources.style_css,
        "usageDescription.js": PackageResources.usageDescription_js,
        "usageFigures.js": PackageResources.usageFigures_js,
        "welcomeView.js": PackageResources.welcomeView_js,
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
