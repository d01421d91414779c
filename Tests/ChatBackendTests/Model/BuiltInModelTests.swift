import Foundation
import Testing

@testable import chat_backend

@Suite("The built-in model")
struct BuiltInModelTests {
    private func said(_ texts: String...) -> [Message] {
        texts.enumerated().map {
            Message(id: "\($0.offset)", role: $0.offset % 2 == 0 ? .user : .assistant, text: $0.element)
        }
    }

    private func answer(_ conversation: [Message]) async throws -> String {
        var text = ""
        for try await piece in BuiltInModel(pace: .zero).answer(to: conversation) { text += piece }
        return text
    }

    @Test("Says the same to the same conversation, in several pieces, and something else to another")
    func deterministic() async throws {
        let conversation = said("I planted tomatoes in the garden today")
        let first = try await answer(conversation)
        #expect(try await answer(conversation) == first)
        #expect(first == BuiltInModel.text(for: conversation))
        #expect(first.contains(" ") && first.count > 20)
        let answers = ["I moved to Lisbon", "My sister visits", "Work was hard", "It rains again", "I slept badly"]
            .map { BuiltInModel.text(for: said($0)) }
        #expect(Set(answers).count >= 4)
    }

    @Test("Refers to what was said, now and before")
    func refers() {
        #expect(BuiltInModel.text(for: said("I planted tomatoes today")).contains("“tomatoes”"))
        let second = BuiltInModel.text(for: said("I planted tomatoes today", "Good", "And the neighbours complained"))
        #expect(second.contains("“neighbours”") || second.contains("“complained”"))
        #expect(second.contains("“tomatoes”"))
    }

    @Test("The same words twice have not the same answer twice")
    func repeated() {
        let once = said("Why is that?")
        let twice = said("Why is that?", BuiltInModel.text(for: said("Why is that?")), "Why is that?")
        #expect(BuiltInModel.text(for: once) != BuiltInModel.text(for: twice))
    }

    @Test(
        "Has an answer to whatever text",
        arguments: ["?", "…", "🙂", "a", "\u{0}", "ÄÖÜ", String(repeating: "x", count: 4_000)]
    )
    func whatever(text: String) async throws {
        #expect(try await answer(said(text)).count > 10)
        #expect(try await answer([]).count > 10)
    }

    @Test("At its slowest pace it takes no longer than a model may, so that a hold lasts as long")
    func slowest() {
        let texts = ["Hello", "Thanks", "I planted tomatoes", "Why did the neighbours complain?"]
        let answers = (0..<400).map { number in
            BuiltInModel.text(for: said("My sister came", "Good", "\(texts[number % 4]) \(number)"))
        }
        let longest = answers.map { $0.split(separator: " ").count }.max() ?? 0
        #expect(longest > 20 && .milliseconds(5_000) * longest < Exchange.answerTimeMaximum, "\(longest) words")
    }

    @Test("Ends its work when nobody reads any more, and tells the reader of no error, whichever of them is first")
    func stops() async throws {
        // The reader and the work end beside each other: one attempt may see the one order and the next the other.
        for _ in 0..<500 {
            let (ended, end) = AsyncStream<Void>.makeStream()
            let answer = AsyncThrowingStream<String, any Error>.working { _ in
                defer { end.finish() }
                try await Task.sleep(for: .seconds(3_600))
            }
            let reading = Task {
                for try await _ in answer { return true }
                return false
            }
            reading.cancel()
            #expect(try await reading.value == false)
            for await _ in ended {}
        }
    }

    @Test("Stops between two words when nobody reads any more")
    func stopsBetweenWords() async throws {
        let reading = Task {
            for try await _ in BuiltInModel(pace: .seconds(3_600)).answer(to: said("Hello")) { return true }
            return false
        }
        reading.cancel()
        #expect(try await reading.value == false)
    }
}
