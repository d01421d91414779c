import Foundation
import Testing
import Usage
import UsageStore

@testable import HTTPSide

@Suite("A page")
struct PageTests {
    private let library: PageLibrary

    init() throws {
        library = try PageLibrary()
    }

    private var overview: String {
        library.render(.overview, OverviewPresenter(figures: DashboardFixtures.overview).page(DashboardFixtures.frame("Overview")))
    }

    private var user: String {
        let page = UserPresenter(figures: DashboardFixtures.user)
            .page(DashboardFixtures.frame("User"), notices: [], actions: DashboardFixtures.actions)
        return library.render(.user, page)
    }

    @Test("look")
    func look() throws {
        let directory = try #require(ProcessInfo.processInfo.environment["LOOK"])
        for (name, page) in [("overview", overview), ("user", user)] {
            try page.write(toFile: "\(directory)/\(name).html", atomically: true, encoding: .utf8)
        }
        try Stylesheet.text.write(toFile: "\(directory)/style.css", atomically: true, encoding: .utf8)
    }
}
