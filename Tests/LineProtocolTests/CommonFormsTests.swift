import Testing
import Usage

@testable import LineProtocol

@Suite("The common forms of CONSUME")
struct CommonFormsTests {
    private static let line = Array("CONSUME \(userText)\r\n".utf8)
    private static let array = arrayRequest(["CONSUME", userText])

    private func recognised(_ bytes: [UInt8], limits: RequestLimits = .init()) -> (bytes: Int, user: UserID)? {
        bytes.withUnsafeBytes { CommonForms(limits: limits, permissions: .everything).recognise($0) }
    }

    @Test("are recognised, and what follows them is left alone", arguments: [line, array])
    func recognition(form: [UInt8]) {
        for rest in ["", "P", "CONSUME", "\r\n"] {
            let found = recognised(form + Array(rest.utf8))
            #expect(found?.bytes == form.count)
            #expect(found?.user == user)
        }
    }

    @Test("are not recognised before their last byte", arguments: [line, array])
    func incomplete(form: [UInt8]) {
        for count in 0..<form.count { #expect(recognised(Array(form.prefix(count))) == nil) }
    }

    @Test("are refused by limits that they exceed, and only by those", arguments: [line, array])
    func limits(form: [UInt8]) {
        for size in 43...45 {
            for tokens in 1...3 {
                let limits = RequestLimits(requestSizeBytes: size, tokens: tokens)
                #expect((recognised(form, limits: limits) != nil) == (size >= 44 && tokens >= 2))
                #expect(decode([form], limits: limits) == decode(form.map { [$0] }, limits: limits))
            }
        }
    }

    /// Read byte by byte, a request is begun before it is complete, and goes the general way.
    @Test("are the requests that the general way makes of them, and so is each neighbour", arguments: [line, array])
    func neighbours(form: [UInt8]) {
        let bytes = Array("\0\t\n\r !$*+-./0239:@AFGZ`afgz\u{7F}".utf8) + [0x80, 0xB0, 0xC1, 0xE6, 0xFF]
        for position in form.indices {
            var neighbours = [form, form]
            neighbours[0].remove(at: position)
            neighbours[1].insert(form[position], at: position)
            for byte in bytes {
                neighbours.append(form)
                neighbours[neighbours.count - 1][position] = byte
            }
            for neighbour in neighbours {
                let stream = neighbour + form + Array("PING\r\n".utf8)
                #expect(decode(stream) == decodeByteByByte(stream), "\(stream)")
            }
        }
    }

    @Test("are one request, in whatever two reads they come", arguments: [line, array])
    func twoReads(form: [UInt8]) {
        let request = DecodedRequest.command(.consume(user: user, messages: 1))
        let stream = form + form
        for cut in 0...stream.count {
            #expect(decode([Array(stream.prefix(cut)), Array(stream.dropFirst(cut))]) == [request, request])
        }
    }
}
