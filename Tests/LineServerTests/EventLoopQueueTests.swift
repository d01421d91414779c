import Dispatch
import Foundation
import Testing

@testable import LineServer
@testable import ServiceCore

@Suite("The queue to an event loop")
struct EventLoopQueueTests {
    @Test("the first element schedules a task, which removes all that are queued by then")
    func oneHop() {
        let queue = EventLoopQueue<Int>()
        var tasks = 0
        for number in 1...3 { queue.append(number) { tasks += 1 } }
        #expect(tasks == 1)
        #expect(queue.removeAll() == [1, 2, 3])
        queue.append(4) { tasks += 1 }
        #expect(tasks == 2)
    }

    @Test("a closed queue drops elements and schedules nothing")
    func closed() {
        let queue = EventLoopQueue<Int>()
        queue.close()
        queue.append(1) { Issue.record("a task on an event loop that may have ended") }
        #expect(queue.removeAll().isEmpty)
    }

    /// The event loop wakes up before the thread that has woken it goes on.
    @Test("elements can be removed while a task is being scheduled")
    func removingDoesNotWaitForTheHop() {
        let queue = EventLoopQueue<Int>()
        let isRemoved = DispatchSemaphore(value: 0)
        queue.append(1) {
            Thread.detachNewThread {
                #expect(queue.removeAll() == [1])
                isRemoved.signal()
            }
            #expect(isRemoved.wait(timeout: .now() + .seconds(60)) == .success)
        }
    }

    @Test("cannot be closed while a task is being scheduled")
    func closingWaitsForTheHop() {
        let queue = EventLoopQueue<Int>()
        let isClosed = DispatchSemaphore(value: 0)
        queue.append(1) {
            Thread.detachNewThread {
                queue.close()
                isClosed.signal()
            }
            #expect(isClosed.wait(timeout: .now() + .milliseconds(200)) == .timedOut)
        }
        #expect(isClosed.wait(timeout: .now() + .seconds(600)) == .success)
    }
}
