import Usage

/// The verbs of operators, which change or delete a user's plan and usage.
extension VerbDefinition {
    static let setPlan = VerbDefinition(
        "SETPLAN <user> <plan> [state=] [started=] [expires=] [grace_until=] [anchor=]",
        "set the user's plan, state and dates",
        .operator
    ) { arguments throws(ReplyError) in
        let user = try arguments.user()
        guard let plan = arguments.positional(1)?.text, Plan.isName(plan) else {
            throw .badArgument("plan must be a plan's name: 1 to 32 of a-z, 0-9 and _, a letter first")
        }
        return .setPlan(
            PlanChange(
                user: user,
                plan: plan,
                state: try arguments.state(),
                startedAt: try arguments.instant(of: .started),
                expiresAt: try arguments.instant(of: .expires),
                graceUntil: try arguments.instant(of: .graceUntil),
                anchorDay: try arguments.number(of: .anchor, in: 1...31)
            )
        )
    }

    static let grant = VerbDefinition(
        "GRANT <user> <n> key= [reason=] [expires=]",
        "raise this period's limit by n messages, once per key; with expires=: n messages for any period until then, or never",
        .operator
    ) { arguments throws(ReplyError) in
        .grant(
            user: try arguments.user(),
            Grant(
                try arguments.messages(),
                key: try arguments.requiredKey(of: "grant, so that it is granted once"),
                reason: try arguments.reason(),
                end: try arguments.grantEnd()
            )
        )
    }

    static let resetUsage = VerbDefinition(
        "RESETUSAGE <user> [period] [model=] [member=]",
        "set the period's counts to 0, and close the windows; window as period: close the window alone; with model=, member=: only theirs",
        .operator
    ) { arguments throws(ReplyError) in
        if let word = arguments.positional(1), word.text == Command.window {
            return .closeWindow(user: try arguments.user())
        }
        return .resetUsage(user: try arguments.user(), period: try arguments.period(at: 1))
    }

    static let forget = VerbDefinition(
        "FORGET <user>",
        "delete all data of the user; a user who returns continues the same trial",
        .operator
    ) { arguments throws(ReplyError) in
        .forget(user: try arguments.user())
    }
}
