import NIOCore
import Testing
import Usage

@testable import LineProtocol

@Suite("The request decoder")
struct RequestDecoderTests {
    @Test("refuses a line at the byte that makes it too long, not at its end")
    func refusedAtOnce() {
        var decoder = RequestDecoder()
        var buffer = ByteBuffer(repeating: UInt8(ascii: "x"), count: 1_024)
        #expect(decoder.next(&buffer) == nil)
        buffer.writeString("x")
        #expect(decoder.next(&buffer)?.code == .tooLong)
    }

    @Test("refuses 64 KiB without LF in one read, and keeps none of it")
    func endless() {
        var decoder = RequestDecoder()
        var buffer = ByteBuffer(repeating: UInt8(ascii: "x"), count: 65_536)
        #expect(decoder.next(&buffer)?.isFatal == true)
        #expect(buffer.readableBytes == 0)
    }

    @Test("drops all bytes after a fatal error")
    func closed() {
        for bad in ["*x", "GET / HTTP/1.1\r\n", String(repeating: "x", count: 1_025)] {
            var decoder = RequestDecoder()
            var buffer = ByteBuffer(string: bad)
            #expect(decoder.next(&buffer)?.isFatal == true)
            for more in ["PING\n", "*1\r\n$4\r\nPING\r\n", "GET / HTTP/1.1\r\n", "\n"] {
                buffer.writeString(more)
                #expect(decoder.next(&buffer) == nil)
                #expect(buffer.readableBytes == 0)
            }
        }
    }

    @Test("keeps no more of an incomplete request than the limits and its framing")
    func bounded() {
        let longest = arrayRequest(["ECHO"] + Array(repeating: "x", count: 14) + [String(repeating: "x", count: 986)])
        for bytes in [longest, Array(("ECHO " + String(repeating: "x", count: 1_019)).utf8)] {
            var decoder = RequestDecoder()
            var buffer = ByteBuffer()
            var most = 0
            for byte in bytes {
                buffer.writeInteger(byte)
                if decoder.next(&buffer) == nil { most = max(most, buffer.readableBytes) }
            }
            #expect(most < 1_024 + 5 + 16 * 9)
        }
    }

    @Test("removes a request and the empty lines before it, and no byte more")
    func readerIndex() {
        var decoder = RequestDecoder()
        var buffer = ByteBuffer(string: "\r\n\n  \nPING\r\n\nINFO")
        #expect(decoder.next(&buffer) == .command(.ping(text: nil)))
        #expect(String(buffer: buffer) == "\nINFO")
        #expect(decoder.next(&buffer) == nil)
        #expect(String(buffer: buffer) == "INFO")
    }

    @Test("decodes a buffer that does not begin at 0, also after its read bytes are discarded")
    func movedBuffer() {
        var decoder = RequestDecoder()
        var buffer = ByteBuffer(string: "PING 1\n*2\r\n$4\r\nPI")
        #expect(decoder.next(&buffer) == .command(.ping(text: "1")))
        #expect(decoder.next(&buffer) == nil)
        buffer.discardReadBytes()
        buffer.writeString("NG\r\n$1\r\n2\r\n")
        #expect(decoder.next(&buffer) == .command(.ping(text: "2")))
    }

    @Test("applies the limits that it is given")
    func limits() {
        let limits = RequestLimits(bytesMaximum: 8, tokensMaximum: 2)
        #expect(decode([Array("ECHO 123\r\n".utf8)], limits: limits) == [.command(.echo(text: "123"))])
        #expect(decode([Array("ECHO 1234\n".utf8)], limits: limits).map(\.code) == [.tooLong])
        #expect(decode([arrayRequest(["ECHO", "123"])], limits: limits) == [.command(.echo(text: "123"))])
        #expect(decode([arrayRequest(["ECHO", "1234"])], limits: limits).map(\.code) == [.tooLong])
        #expect(decode([Array("A B C\n".utf8)], limits: limits).map(\.code) == [.tooLong])
        #expect(decode([Array("*3\r\n".utf8)], limits: limits).map(\.code) == [.tooLong])
    }
}
