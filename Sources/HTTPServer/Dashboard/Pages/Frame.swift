import Engine
import ServiceCore

/// The header, the navigation and the footer of every page.
struct Frame {
    /// Of the document, without the product's name.
    var title: String
    var version = HeadroomVersion.current
    /// For the forms of this page.
    var csrfToken = ""
    /// The name of the token that opened the session.
    var signedInAs: String?
    var isOverview = false
    var isUsers = false
    var isWords = false
    /// False for a viewer without permission to see any page.
    var hasNavigation = true
}

/// A message above a page's content.
struct Notice {
    enum Kind: String {
        case good, warning, bad
    }

    var kind: String
    var title: String
    var text: String
    /// The result of the viewer's own action, which screen readers announce at once.
    var isOutcome: Bool

    init(_ kind: Kind, _ title: String, _ text: String, isOutcome: Bool = false) {
        self.kind = kind.rawValue
        self.title = title
        self.text = text
        self.isOutcome = isOutcome
    }
}
