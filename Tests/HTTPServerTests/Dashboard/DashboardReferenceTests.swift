import Foundation
import Testing

@testable import HTTPServer

@Suite("The reference of the dashboard")
struct DashboardReferenceTests {
    private let section: String

    init() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        section = try String(contentsOf: root.appending(path: "docs/dashboard.md"), encoding: .utf8)
    }

    @Test("the reference has the code's files, cookies and limits")
    func constants() {
        for asset in Asset.all { #expect(section.contains("`GET /dashboard/\(asset.path)`"), "\(asset.path)") }
        #expect(
            section.contains("`\(ViewerAuthenticator.sessionCookie)`")
                && section.contains("`\(ViewerAuthenticator.formCookie)`")
        )
        #expect(section.contains("good for \(SessionTable.lifetime.components.seconds / 3_600) hours"))
        #expect(section.contains("\(NumberText.grouped(SessionTable.capacity)) sessions"))
        #expect(section.contains("live streams \(LiveStream.maximum) may be open"))
    }

    @Test("the reference and the template have every action")
    func actions() {
        let template = EmbeddedTexts["actions.mustache"]
        for action in ActionForm.actionNames {
            #expect(section.contains("`POST /dashboard/users/{user}/\(action)`"))
            #expect(template.contains("action=\"/dashboard/users/{{user}}/\(action)\""))
        }
        #expect(section.contains("`POST /dashboard/event/replay`"))
        #expect(section.contains("the first \(NumberText.grouped(UserListQuery.usersMaximum)) users"))
    }
}
