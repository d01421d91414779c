/// When messages come back, as sentences say it.
enum Comeback {
    /// Messages come back on the day of the reset.
    case atReset
    case after(seconds: Int64)
    /// Messages do not come back, or not for this user.
    case never
}

/// The sentences of one situation. Each says in another way when messages come back.
struct TimedSentences {
    let dated: Sentence
    let waiting: Sentence
    let undated: Sentence
    /// The sentences instead of `dated` and `undated` if the period ends with this month.
    let datedThisMonth, undatedThisMonth: Sentence

    /// - Parameter thisMonth: nil if no sentence names the month.
    private init(
        dated: Sentence,
        waiting: Sentence,
        undated: Sentence,
        thisMonth: (dated: Sentence, undated: Sentence)? = nil
    ) {
        (self.dated, self.waiting, self.undated) = (dated, waiting, undated)
        (datedThisMonth, undatedThisMonth) = thisMonth ?? (dated, undated)
    }

    static let gentle = TimedSentences(
        dated: .gentleUntil,
        waiting: .gentleWait,
        undated: .gentleLifetime,
        thisMonth: (.gentle, .gentle)
    )
    static let prominent = TimedSentences(dated: .prominent, waiting: .prominentWait, undated: .prominentUndated)
    static let usedUp = TimedSentences(
        dated: .blockedUntil,
        waiting: .blockedWait,
        undated: .blockedUndated,
        thisMonth: (.blockedMonthly, .blockedMonthlyUndated)
    )
    static let exceeded = TimedSentences(dated: .exceedsUntil, waiting: .exceedsWait, undated: .exceedsUndated)
    static let accessible = TimedSentences(
        dated: .accessibleUntil,
        waiting: .accessibleWait,
        undated: .accessibleLifetime,
        thisMonth: (.accessibleMonthly, .accessibleMonthly)
    )
    static let accessibleUnlimited = TimedSentences(
        dated: .accessibleUntilUnlimited,
        waiting: .accessibleWaitUnlimited,
        undated: .accessibleLifetimeUnlimited,
        thisMonth: (.accessibleMonthlyUnlimited, .accessibleMonthlyUnlimited)
    )

    /// Returns the sentences about an allowance of which some messages are left, or which is used up.
    ///
    /// - Parameter tier: not silent.
    static func about(_ allowance: Allowance, _ tier: Tier) -> TimedSentences {
        switch (allowance.name, tier) {
        case (.period, .silent), (.period, .gentle): gentle
        case (.period, .prominent): prominent
        case (.period, .blocked): usedUp
        case (.window, .silent), (.window, .gentle): gentleWindow
        case (.window, .prominent): prominentWindow
        case (.window, .blocked): usedUpWindow
        case (.model, .blocked): allowance.limit == 0 ? noModel : usedUpModel
        case (.model, _): model
        case (.member, .silent), (.member, .gentle): gentleMember
        case (.member, .prominent): prominent
        case (.member, .blocked): usedUpMember
        }
    }

    /// The sentences about a model: `{label}` is its name there, and elsewhere the plan's.
    static let sentencesAboutModels = [model, usedUpModel, noModel].flatMap { [$0.dated, $0.waiting, $0.undated] }

    private static let model = TimedSentences(dated: .modelUntil, waiting: .modelWait, undated: .modelUndated)
    private static let usedUpModel = TimedSentences(
        dated: .blockedModelUntil,
        waiting: .blockedModelWait,
        undated: .blockedModelUndated
    )
    /// The plan has no messages with the model, so that there is nothing to come back.
    private static let noModel = TimedSentences(
        dated: .blockedModelNoMessages,
        waiting: .blockedModelNoMessages,
        undated: .blockedModelNoMessages
    )
    /// They are those of the period, but for the conversations of this month, which are everybody's.
    private static let gentleMember = TimedSentences(
        dated: .gentleUntil,
        waiting: .gentleWait,
        undated: .gentleLifetime
    )
    private static let usedUpMember = TimedSentences(
        dated: .blockedMemberUntil,
        waiting: .blockedMemberWait,
        undated: .blockedMemberUndated
    )

    // A window has no date: its sentences with a date are never chosen.
    private static let gentleWindow = TimedSentences(dated: .gentleUntil, waiting: .window, undated: .gentleLifetime)
    private static let prominentWindow = TimedSentences(dated: .prominent, waiting: .window, undated: .prominentUndated)
    private static let usedUpWindow = TimedSentences(
        dated: .blockedUntil,
        waiting: .blockedWindow,
        undated: .blockedUndated
    )
}
