import Foundation
import Testing

@testable import HTTPServer

@Suite("The reference of the dashboard")
struct DashboardReferenceTests {
    private let section: String

    init() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/reference.md"), encoding: .utf8)
        let start = try #require(page.range(of: "\n### Dashboard\n")).upperBound
        section = page[start...].components(separatedBy: "\n### ")[0]
    }

    @Test("names the files, the cookies and the limits as the code has them")
    func facts() {
        for asset in Asset.all { #expect(section.contains("`GET /dashboard/\(asset.path)`"), "\(asset.path)") }
        #expect(section.contains("`\(Reception.sessionCookie)`") && section.contains("`\(Reception.formCookie)`"))
        #expect(section.contains("good for \(SessionTable.lifetime.components.seconds / 3_600) hours"))
        #expect(section.contains("\(NumberText.grouped(SessionTable.capacity)) sessions"))
        #expect(section.contains("live streams \(LiveStream.maximum) may be open"))
    }

    @Test("names every form of an operator's")
    func actions() {
        for action in [ActionForm.Action.grant(messages: 1), .reset] {
            #expect(section.contains("`POST /dashboard/users/{user}/\(action.name)`"))
            #expect(UserPage.actionsTemplate.contains("action=\"/dashboard/users/{{user}}/\(action.name)\""))
        }
    }
}
