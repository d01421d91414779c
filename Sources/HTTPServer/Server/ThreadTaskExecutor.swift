import NIOCore

/// Runs tasks on one thread, that of an event loop without connections.
///
/// Swift's pool has a thread for each processor. There, each part of a request that arrives and each part of a response
/// may wake another thread, and many requests over HTTP would take processors from the line protocol.
final class ThreadTaskExecutor: TaskExecutor {
    private let thread: any EventLoop

    init(_ thread: any EventLoop) {
        self.thread = thread
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        thread.execute { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
