import NIOCore

/// Buffers for replies, reused so that writing replies allocates nothing.
struct ReplyBufferPool {
    private let allocator = ByteBufferAllocator()
    private var spares: [ByteBuffer] = []

    /// A larger buffer is not kept: few replies need it.
    private static let bufferBytesMaximum = 16_384
    /// The number of connections that can be answered at once without an allocation.
    private static let sparesMaximum = 64

    mutating func take() -> ByteBuffer {
        guard var buffer = spares.popLast() else { return allocator.buffer(capacity: 1_024) }
        // This allocates where the socket has not written all of it yet.
        buffer.clear()
        return buffer
    }

    /// - Parameter buffer: was given to the channel. Usually the kernel has all of it, and its memory is free again.
    mutating func giveBack(_ buffer: ByteBuffer) {
        guard buffer.storageCapacity <= ReplyBufferPool.bufferBytesMaximum,
            spares.count < ReplyBufferPool.sparesMaximum
        else { return }
        spares.append(buffer)
    }
}
