import LineProtocol
import NIOCore
import Usage

extension BenchmarkCase {
    static let encoding = [
        encode("encode silent ALLOWED", used: 12),
        encode("encode ALLOWED with banner", used: 700),
        encode("encode BLOCKED", used: 800),
        // One write of LineConnectionHandler: a new buffer with the capacity that it requests.
        BenchmarkCase("encode 16 silent ALLOWED into a fresh buffer", requests: 16) {
            let reply = Reply.answer(Fixtures.answer(used: 12))
            let vocabulary = Words.shipped.standard
            let allocator = ByteBufferAllocator()
            return {
                var buffer = allocator.buffer(capacity: 512)
                for _ in 0..<16 { reply.encode(into: &buffer, in: vocabulary) }
                keep(buffer)
            }
        },
    ]

    private static func encode(_ name: String, used: Int) -> BenchmarkCase {
        BenchmarkCase(name) {
            let reply = Reply.answer(Fixtures.answer(used: used))
            let vocabulary = Words.shipped.standard
            var buffer = ByteBuffer()
            buffer.reserveCapacity(4_096)
            return {
                buffer.clear()
                reply.encode(into: &buffer, in: vocabulary)
                keep(buffer)
            }
        }
    }
}
