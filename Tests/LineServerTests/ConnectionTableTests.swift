import Testing

@testable import LineServer
@testable import ServiceCore

@Suite("The connection table")
struct ConnectionTableTests {
    @Test("finds a connection by its number until it is removed")
    func finding() {
        var table = ConnectionTable<String>()
        let (ada, bob) = (table.insert("ada"), table.insert("bob"))
        #expect(table[ada] == "ada")
        #expect(table[bob] == "bob")
        #expect(table.all == ["ada", "bob"])
        let isRemoved = table.remove(ada)
        #expect(isRemoved)
        #expect(table[ada] == nil)
        #expect(table[bob] == "bob")
        #expect(table.all == ["bob"])
        let isRemovedAgain = table.remove(ada)
        #expect(!isRemovedAgain)
    }

    @Test("reuses a slot, but never a number")
    func reuse() {
        var table = ConnectionTable<Int>()
        var numbers: Set<Int> = []
        var last = table.insert(0)
        for connection in 1...100 {
            #expect(numbers.insert(last).inserted)
            let removed = last
            let isRemoved = table.remove(removed)
            last = table.insert(connection)
            let isRemovedAgain = table.remove(removed)
            #expect(isRemoved && !isRemovedAgain)
            #expect(table[removed] == nil, "an outcome for a closed connection must not reach its successor")
            #expect(table[last] == connection)
        }
        #expect(table.all == [100])
    }

    @Test("finds nothing for a number that it has not returned", arguments: [0, 1, -1, Int.max, Int.min, 1 << 32])
    func unknown(number: Int) {
        var table = ConnectionTable<Int>()
        #expect(table[number] == nil)
        let isRemoved = table.remove(number)
        #expect(!isRemoved)
    }
}
