import Testing

@testable import HeadroomServer

@Suite("The census of connections")
struct CensusTests {
    @Test("counts who is there, who came and who was refused")
    func counting() {
        let census = Census()
        #expect(census.enter(atMost: 2))
        #expect(census.enter(atMost: 2))
        #expect(!census.enter(atMost: 2))
        census.leave()
        #expect(census.enter(atMost: 2))
        #expect(census.snapshot.current == 2)
        #expect(census.snapshot.total == 3)
        #expect(census.snapshot.refused == 1)
    }

    @Test("waits for nobody when nobody is there")
    func alreadyEmpty() async {
        await Census().emptied(within: .seconds(600))
    }

    @Test("waits for the last to leave")
    func emptying() async {
        let census = Census()
        for _ in 0..<2 { #expect(census.enter(atMost: 9)) }
        let start = ContinuousClock.now
        async let emptied: Void = census.emptied(within: .seconds(600))
        census.leave()
        #expect(census.snapshot.current == 1)
        census.leave()
        await emptied
        #expect(ContinuousClock.now - start < .seconds(300))
        #expect(census.snapshot.current == 0)
    }

    @Test("waits no longer than it was told")
    func outOfTime() async {
        let census = Census()
        #expect(census.enter(atMost: 9))
        let start = ContinuousClock.now
        await census.emptied(within: .milliseconds(50))
        #expect(ContinuousClock.now - start >= .milliseconds(50))
        #expect(census.snapshot.current == 1)
        census.leave()
    }
}
