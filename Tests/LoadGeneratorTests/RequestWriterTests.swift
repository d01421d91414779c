import Foundation
import NIOCore
import Testing

@testable import LoadGenerator

@Suite("Request writer")
struct RequestWriterTests {
    private static let prefix = "00000000-0000-4000-8000-"

    private func writer(
        _ request: LoadRequest,
        reservationsInRow: Int = 1,
        users: Int = 1,
        worker: Int = 0
    ) -> RequestWriter {
        var random = SeededRandom(seed: 5)
        let sampler = UserSampler(.uniform, users: users, random: &random)
        return RequestWriter(
            request,
            reservationsInRow: reservationsInRow,
            userPrefix: Self.prefix,
            keyPrefix: "run-",
            worker: worker,
            sampler: sampler,
            random: random
        )
    }

    /// The words of requests in a row on one connection.
    private func words(_ writer: RequestWriter, count: Int) throws -> [[String]] {
        var writer = writer
        var held = RequestWriter.Reservations()
        return try (0..<count).map { _ in
            var buffer = ByteBuffer()
            writer.write(into: &buffer, reservations: &held)
            return try Self.words(of: String(buffer: buffer))
        }
    }

    /// Reads an array of bulk strings and checks each length.
    private static func words(of request: String) throws -> [String] {
        let lines = request.split(separator: "\r\n", omittingEmptySubsequences: false)
        try #require(lines.first == "*\((lines.count - 2) / 2)" && lines.last == "")
        return try stride(from: 1, to: lines.count - 1, by: 2).map { index in
            try #require(lines[index] == "$\(lines[index + 1].utf8.count)")
            return String(lines[index + 1])
        }
    }

    @Test("Each verb is written as an array of its words")
    func verbs() throws {
        let user = Self.prefix + "000000000000"
        func first(_ verb: LoadRequest.Verb, _ messages: Int) throws -> [String] {
            try words(writer(.verb(verb, messages: messages, keyShare: 0)), count: 1)[0]
        }
        #expect(try first(.consume, 1) == ["CONSUME", user])
        #expect(try first(.consume, 20) == ["CONSUME", user, "20"])
        #expect(try first(.check, 2) == ["CHECK", user, "2"])
        #expect(try first(.usage, 1) == ["USAGE", user])
        #expect(try first(.reserve, 1) == ["RESERVE", user, "key=run-0000000000000001"])
    }

    @Test("User numbers have twelve digits")
    func users() throws {
        let written = try words(writer(.verb(.consume, messages: 1, keyShare: 0), users: 10_000_000), count: 1_000)
        for words in written {
            let user = words[1]
            #expect(user.utf8.count == 36 && user.hasPrefix(Self.prefix))
            let number = try #require(Int(user.dropFirst(24)))
            #expect((0..<10_000_000).contains(number))
        }
        #expect(Set(written).count > 990)
    }

    @Test("The share of requests with a key is as configured, and each key is new")
    func keys() throws {
        let written = try words(writer(.verb(.consume, messages: 1, keyShare: 0.25)), count: 10_000)
        let keys = written.compactMap { $0.count == 3 ? $0[2] : nil }
        #expect((2_300...2_700).contains(keys.count))
        #expect(Set(keys).count == keys.count)
        #expect(keys.allSatisfy { $0.hasPrefix("key=run-") && $0.utf8.count == 24 })
        let all = try words(writer(.verb(.consume, messages: 1, keyShare: 1)), count: 100)
        #expect(all.allSatisfy { $0.count == 3 })
    }

    @Test("Workers have different keys")
    func workers() throws {
        let request = LoadRequest.verb(.consume, messages: 1, keyShare: 1)
        let keys = try (0..<3).flatMap { try words(writer(request, worker: $0), count: 100).map { $0[2] } }
        #expect(Set(keys).count == 300)
    }

    @Test("Each connection commits its last reservation")
    func reserve() throws {
        var writer = writer(.verb(.reserve, messages: 3, keyShare: 0), users: 1_000)
        var held = [RequestWriter.Reservations(), RequestWriter.Reservations()]
        var written: [[[String]]] = [[], []]
        for index in [0, 1, 1, 0, 0, 1, 0, 1] {
            var buffer = ByteBuffer()
            writer.write(into: &buffer, reservations: &held[index])
            written[index].append(try Self.words(of: String(buffer: buffer)))
        }
        for connection in written {
            #expect(connection.map { $0[0] } == ["RESERVE", "COMMIT", "RESERVE", "COMMIT"])
            for (reserve, commit) in [(connection[0], connection[1]), (connection[2], connection[3])] {
                #expect(reserve[2] == "3")
                #expect(commit == ["COMMIT", reserve[1], reserve[3]])
            }
        }
        #expect(Set(written.joined().map { $0.last }).count == 4)
    }

    @Test("With several requests in flight, each reservation is committed when it is answered, in order")
    func reserveInRow() throws {
        let inFlight = 16
        let request = LoadRequest.verb(.reserve, messages: 1, keyShare: 0)
        let written = try words(writer(request, reservationsInRow: inFlight, users: 1_000), count: 2_000)
        let reserved = written.indices.filter { written[$0][0] == "RESERVE" }
        let committed = written.indices.filter { written[$0][0] == "COMMIT" }
        #expect(reserved.count + committed.count == written.count && committed.count > 980)
        for (reserve, commit) in zip(reserved, committed) {
            #expect(written[reserve][1...] == written[commit][1...])
            // The request in between that is sent when the RESERVE is answered, or a later one.
            #expect(commit - reserve >= inFlight)
        }
        #expect(Set(reserved.map { written[$0][2] }).count == reserved.count)
    }

    @Test("The connections begin to commit at different times")
    func reserveOutOfStep() throws {
        var writer = writer(.verb(.reserve, messages: 1, keyShare: 0), reservationsInRow: 16)
        let lengths = try (0..<100).map { _ in
            var held = RequestWriter.Reservations()
            for number in 0... {
                var buffer = ByteBuffer()
                writer.write(into: &buffer, reservations: &held)
                if try Self.words(of: String(buffer: buffer))[0] == "COMMIT" { return number }
            }
            return 0
        }
        #expect(Set(lengths).count > 10 && lengths.allSatisfy { (16..<32).contains($0) })
    }

    @Test("What is reserved at the end is committed")
    func reserveAtEnd() throws {
        var writer = writer(.verb(.reserve, messages: 1, keyShare: 0), reservationsInRow: 8)
        var held = RequestWriter.Reservations()
        var buffer = ByteBuffer()
        for _ in 0..<7 { writer.write(into: &buffer, reservations: &held) }
        #expect(writer.writeCommits(into: &buffer, reservations: &held) == 7)
        #expect(writer.writeCommits(into: &buffer, reservations: &held) == 0)
        let text = String(buffer: buffer)
        for key in 1...7 { #expect(text.components(separatedBy: "key=run-000000000000000\(key)").count == 3) }
    }

    @Test("User and key are replaced anywhere in a command")
    func command() throws {
        let written = try words(
            writer(.command(["EVALSHA", "abc", "1", "usage:{user}:{user}", "{key}{key}", "{other}", "é"])),
            count: 2
        )
        let user = Self.prefix + "000000000000"
        let key = "run-0000000000000001"
        #expect(written[0] == ["EVALSHA", "abc", "1", "usage:\(user):\(user)", key + key, "{other}", "é"])
        #expect(written[1][4] == "run-0000000000000002run-0000000000000002")
    }
}
