import LineProtocol
import NIOCore
import Usage

extension BenchmarkCase {
    static let encoding = [
        encode("encode silent ALLOWED", used: 12),
        encode("encode ALLOWED with banner", used: 700),
        encode("encode BLOCKED", used: 800),
        encode("encode silent ALLOWED with a model", used: 12, withModel: true),
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

    private static func encode(_ name: String, used: Int, withModel: Bool = false) -> BenchmarkCase {
        BenchmarkCase(name) {
            let reply = Reply.answer(Fixtures.answer(used: used, withModel: withModel))
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
