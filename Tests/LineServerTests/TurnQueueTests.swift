import Testing

@testable import LineServer
@testable import ServiceCore

@Suite("The turn queue")
struct TurnQueueTests {
    @Test("prefers connections without a turn, but for each eighth, each kind in its order")
    func order() {
        var queue = TurnQueue<String>()
        for number in 1...2 { queue.append("further \(number)", hadTurn: true) }
        for number in 1...9 { queue.append("first \(number)", hadTurn: false) }
        var order: [String] = []
        while let connection = queue.popFirst() { order.append(connection) }
        let first = (1...9).map { "first \($0)" }
        #expect(order == Array(first[..<7]) + ["further 1"] + Array(first[7...]) + ["further 2"])
        #expect(queue.isEmpty)
    }
}
