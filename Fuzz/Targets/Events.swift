import Engine
import LineProtocol
import Usage

/// Arbitrary events of a connection.
extension FuzzInput {
    mutating func request() -> DecodedRequest {
        switch below(24) {
        case 0...3: .command(.consume(user: user(), messages: 1))
        case 4: .command(.usage(user: user(), period: nil))
        case 5: .command(.check(user: user(), messages: 2).inParts(optional { MessageParts(member: $0.user()) } ?? nil))
        case 6: .command(.history(user: user(), months: 3))
        case 7: .command(.report(period: nil))
        case 8: .command(.top(period: nil, count: 5))
        case 9: .command(.forget(user: user()))
        case 10: .command(.ping(text: optional { EchoedBytes("\($0.below(10))") }))
        case 11: .command(.echo(text: EchoedBytes("\(below(10))")))
        case 12...14: .command(.subscribe((0...below(3)).map { _ in channel() }))
        case 15: .command(.unsubscribe((0...below(2)).map { _ in channel() }))
        case 16: .command(.unsubscribe(nil))
        case 17: .command(.hello(version: optional { 2 + $0.below(2) }, credentials: optional { $0.credentials() }))
        case 18: .command(.authenticate(credentials()))
        case 19:
            .command(one(of: [.info, .client(.id), .client(.setName("a")), .command(.descriptions), .select]))
        case 20: .failure(ReplyError(code: .badArg, text: "no"))
        // Rare, because no request is accepted after them.
        case 21 where below(8) == 0: .fatal(ReplyError(code: .protocol, text: "broken"))
        case 22 where below(8) == 0: .command(.quit)
        default: .command(.setPlan(PlanChange(user: user(), plan: "paid")))
        }
    }

    /// Valid or invalid credentials.
    private mutating func credentials() -> Credentials {
        Credentials(name: nil, token: Secret(one(of: [FuzzInput.goodToken, "wrong"])))
    }

    static let goodToken = "good"

    private mutating func channel() -> UsageChannel {
        let name = "usage:\(user())"
        // A channel keeps the peer's spelling.
        guard let channel = UsageChannel(flag() ? name : "usage:" + name.dropFirst(6).uppercased()) else {
            preconditionFailure("a channel's name")
        }
        return channel
    }

    /// - Parameter count: makes answers different from each other.
    mutating func outcome(isSubscription: Bool, count: () -> Int) -> Outcome {
        let codes: [EngineError.Code] = [
            .unreachable, .unavailable, .unknown, .overloaded, .notFound, .badArgument, .conflict, .expired, .internal,
        ]
        if flag() { return isSubscription ? .subscribed : .answer(answer(counting: count())) }
        if isSubscription || flag() { return .failure(EngineError(one(of: codes), "why")) }
        return one(of: [
            .done, .periodUsages([]), .report(PeriodReport(period: BillingPeriod(year: 2026, month: 1 + below(12)))),
        ])
    }

    private mutating func answer(counting count: Int) -> Answer {
        Answer(user: user(), status: .allowed, snapshot: .counting(count))
    }
}

extension UsageSnapshot {
    /// A snapshot that no other looks like.
    static func counting(_ count: Int) -> UsageSnapshot {
        UsageSnapshot(
            plan: .paid,
            state: .active,
            period: BillingPeriod(year: 2026, month: 11),
            used: count,
            limit: nil,
            startedAt: Instant(secondsSince1970: 0),
            observedAt: Instant(secondsSince1970: 0)
        )
    }
}
