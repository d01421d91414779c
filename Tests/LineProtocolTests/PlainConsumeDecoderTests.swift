import Testing
import Usage

@testable import LineProtocol

@Suite("The decoder of a plain CONSUME")
struct PlainConsumeDecoderTests {
    private static let line = Array("CONSUME \(userText)\r\n".utf8)
    private static let array = arrayRequest(["CONSUME", userText])

    private func decoded(_ bytes: [UInt8], limits: RequestLimits = .init()) -> (bytes: Int, user: UserID)? {
        bytes.withUnsafeBytes { PlainConsumeDecoder(limits: limits, permissions: .all).decode($0) }
    }

    @Test("decodes both forms, and leaves the bytes after them", arguments: [line, array])
    func complete(form: [UInt8]) {
        for rest in ["", "P", "CONSUME", "\r\n"] {
            let found = decoded(form + Array(rest.utf8))
            #expect(found?.bytes == form.count)
            #expect(found?.user == user)
        }
    }

    @Test("decodes nothing before the last byte", arguments: [line, array])
    func incomplete(form: [UInt8]) {
        for count in 0..<form.count { #expect(decoded(Array(form.prefix(count))) == nil) }
    }

    @Test("decodes a request within the limits only", arguments: [line, array])
    func limits(form: [UInt8]) {
        for size in 43...45 {
            for tokens in 1...3 {
                let limits = RequestLimits(bytesMaximum: size, tokensMaximum: tokens)
                #expect((decoded(form, limits: limits) != nil) == (size >= 44 && tokens >= 2))
                #expect(decode([form], limits: limits) == decode(form.map { [$0] }, limits: limits))
            }
        }
    }

    /// A request that is received byte by byte is decoded by the general decoder.
    @Test("agrees with the general decoder, also about similar requests", arguments: [line, array])
    func similar(form: [UInt8]) {
        let bytes = Array("\0\t\n\r !$*+-./0239:@AFGZ`afgz\u{7F}".utf8) + [0x80, 0xB0, 0xC1, 0xE6, 0xFF]
        for position in form.indices {
            var similar = [form, form]
            similar[0].remove(at: position)
            similar[1].insert(form[position], at: position)
            for byte in bytes {
                similar.append(form)
                similar[similar.count - 1][position] = byte
            }
            for request in similar {
                let stream = request + form + Array("PING\r\n".utf8)
                #expect(decode(stream) == decodeByteByByte(stream), "\(stream)")
            }
        }
    }

    @Test("decodes a request that is split over two reads", arguments: [line, array])
    func twoReads(form: [UInt8]) {
        let request = DecodedRequest.command(.consume(user: user, messages: 1))
        let stream = form + form
        for cut in 0...stream.count {
            #expect(decode([Array(stream.prefix(cut)), Array(stream.dropFirst(cut))]) == [request, request])
        }
    }
}
