import LineProtocol
import NIOCore
import Usage

extension BenchmarkCase {
    private static let user = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
    private static let inline = "CONSUME \(user)\r\n"
    private static let array = "*2\r\n$7\r\nCONSUME\r\n$36\r\n\(user)\r\n"
    private static let inlineWithKey = "CONSUME \(user) key=0193a5b2-7f1c-7000-8000-00000000002a\r\n"
    private static let arrayWithKey =
        "*3\r\n$7\r\nCONSUME\r\n$36\r\n\(user)\r\n$40\r\nkey=0193a5b2-7f1c-7000-8000-00000000002a\r\n"

    static let decoding = [
        decode("decode inline CONSUME", [inline]),
        decode("decode array CONSUME", [array]),
        decode("decode inline CONSUME with key", [inlineWithKey]),
        decode("decode array CONSUME with key", [arrayWithKey]),
        decode("decode 16 array CONSUME in one buffer", [String(repeating: array, count: 16)], requests: 16),
        decode("decode array CONSUME over two reads", [String(array.prefix(30)), String(array.dropFirst(30))]),
        BenchmarkCase("parse UserID") {
            let bytes = Array(user.utf8)
            return { bytes.withUnsafeBytes { keep(UserID($0)) } }
        },
    ]

    /// Decodes the requests in these reads as `LineConnectionHandler` does.
    private static func decode(_ name: String, _ reads: [String], requests: Int = 1) -> BenchmarkCase {
        BenchmarkCase(name, requests: requests) {
            let reads = reads.map { ByteBuffer(string: $0) }
            var received = ByteBuffer()
            received.reserveCapacity(2_048)
            var decoder = RequestDecoder()
            return {
                received.clear()
                var decoded = 0
                for read in reads {
                    var read = read
                    received.writeBuffer(&read)
                    while let request = decoder.next(&received) {
                        keep(request)
                        decoded += 1
                    }
                }
                precondition(decoded == requests)
            }
        }
    }
}
