import Dispatch
import Foundation
import Testing

@testable import HeadroomServer

@Suite("What other threads bring to an event loop")
struct ArrivalQueueTests {
    @Test("the first arrival schedules a hop, which takes along what came meanwhile")
    func oneHop() {
        let queue = ArrivalQueue<Int>()
        var hops = 0
        for number in 1...3 { queue.append(number) { hops += 1 } }
        #expect(hops == 1)
        #expect(queue.takeAll() == [1, 2, 3])
        queue.append(4) { hops += 1 }
        #expect(hops == 2)
    }

    @Test("a closed queue drops arrivals and schedules nothing")
    func closed() {
        let queue = ArrivalQueue<Int>()
        queue.close()
        queue.append(1) { Issue.record("a hop to an event loop that may be gone") }
        #expect(queue.takeAll().isEmpty)
    }

    @Test("is not closed while a hop is being scheduled")
    func closingWaitsForTheHop() {
        let queue = ArrivalQueue<Int>()
        let isClosed = DispatchSemaphore(value: 0)
        queue.append(1) {
            Thread.detachNewThread {
                queue.close()
                isClosed.signal()
            }
            #expect(isClosed.wait(timeout: .now() + .milliseconds(200)) == .timedOut)
        }
        #expect(isClosed.wait(timeout: .now() + .seconds(60)) == .success)
    }
}
