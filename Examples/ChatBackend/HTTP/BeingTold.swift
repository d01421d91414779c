/// A sequence that somebody is told, with the work that makes it.
///
/// The work is cancelled when nobody reads any more, when the reading task is cancelled, and by `stop`.
struct BeingTold<Element: Sendable>: AsyncSequence, Sendable {
    private let stream: AsyncStream<Element>
    private let continuation: AsyncStream<Element>.Continuation

    init(
        keeping bufferingPolicy: AsyncStream<Element>.Continuation.BufferingPolicy,
        _ work: @escaping @Sendable (AsyncStream<Element>.Continuation) async -> Void
    ) {
        let (stream, continuation) = AsyncStream.makeStream(of: Element.self, bufferingPolicy: bufferingPolicy)
        self.stream = stream
        self.continuation = continuation
        let task = Task {
            await work(continuation)
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
    }

    func makeAsyncIterator() -> AsyncStream<Element>.AsyncIterator {
        stream.makeAsyncIterator()
    }

    func stop() {
        continuation.finish()
    }
}
