import NIOCore
import NIOPosix

/// Runs tasks on a thread of its own, that of an event loop without connections. It never ends: a task that a broken
/// connection has left may still have a job to run.
///
/// Swift's pool has a thread for each processor. There, each part of a request that arrives and each part of a response
/// may wake another thread, and many requests over HTTP would take processors from the line protocol.
final class ThreadTaskExecutor: TaskExecutor {
    private let thread = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        thread.execute { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
