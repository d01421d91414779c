import Usage

/// The models and members whose messages the plan limits, on a user's page.
struct PartsSection {
    struct Bar {
        /// `12 of 50`
        var used: String
        /// What is counted: `messages in this period, 2 held`.
        var unit: String
        /// Nil without a limit.
        var svg: String?
        /// Nil if nothing comes back, or no window is open.
        var resets: TimeText?
    }

    struct Row {
        var kind: String
        var label: String
        /// Nil if the label is the name.
        var name: String?
        var tier: String
        var bars: [Bar]
        var note: String?
        /// Shows it alone, with the choice to reset it; nil for a viewer that may not change anything.
        var resetLink: String?
    }

    var period: String
    /// The input of the search; empty if all are shown.
    var search: String
    var isSearch: Bool
    var rows: [Row]
    /// Why there are no rows.
    var placeholder: String?
    /// How many are left out.
    var more: String?
}

/// The search for a model or a member, to be shown alone.
struct PartSearch: Sendable {
    let text: String
    private let member: UserID?

    /// - Returns: nil for an empty input.
    init?(_ input: String?, in namespace: UserNamespace?) {
        text = ActionForm.truncated(ActionForm.trimmed(input ?? ""), toScalars: 256)
        guard !text.isEmpty else { return nil }
        member = UserID(text, in: namespace)
    }

    /// Whether it is the limit's name or label, a model that has the limit, or the member.
    fileprivate func finds(_ allowance: ReportedAllowance, _ plan: Plan) -> Bool {
        switch allowance.kind {
        case .model:
            [allowance.name, allowance.label].contains(text)
                || ModelName(text).flatMap { plan.limit(of: .model($0)) }?.name == allowance.name
        case .member: member.map { "\($0)" } == allowance.name
        }
    }
}

extension UserPresenter {
    /// Of models, and of members: an account may have thousands.
    private static let partsMaximum = 20

    var partsSection: PartsSection? {
        guard let snapshot = answer?.snapshot, let all = try? figures.allowances.get(),
            !all.isEmpty || !snapshot.plan.limits.isEmpty
        else { return nil }
        let shown = partsShown
        let more = PlanLimit.Kind.allCases.compactMap { kind -> String? in
            let count = all.filter { $0.kind == kind }.count
            guard partSearch == nil, count > UserPresenter.partsMaximum else { return nil }
            return "The fullest \(UserPresenter.partsMaximum) of \(NumberText.count(count, kind.rawValue)) are shown."
        }
        return PartsSection(
            period: TimeText.period(snapshot.period),
            search: partSearch?.text ?? "",
            isSearch: partSearch != nil,
            rows: shown.enumerated().map { row($1, "part-\($0)", snapshot) },
            placeholder: shown.isEmpty ? placeholder : nil,
            more: more.isEmpty ? nil : more.joined(separator: " ")
        )
    }

    private var placeholder: String {
        partSearch == nil
            ? "No member has sent a message in this period."
            : "No model or member of this name has messages in this period."
    }

    /// The models before the members, each kind by what is taken of its limits.
    var partsShown: [ReportedAllowance] {
        guard let plan = answer?.snapshot.plan, let all = try? figures.allowances.get() else { return [] }
        let found = all.filter { partSearch?.finds($0, plan) ?? true }
        return PlanLimit.Kind.allCases.flatMap { kind in
            found.filter { $0.kind == kind }
                .sorted { ($0.fullness, $0.used, $1.name) > ($1.fullness, $1.used, $0.name) }
                .prefix(UserPresenter.partsMaximum)
        }
    }

    private func row(_ allowance: ReportedAllowance, _ id: String, _ snapshot: UsageSnapshot) -> PartsSection.Row {
        let label = allowance.label ?? allowance.name
        let link = FormFields.query([(name: "part", value: allowance.name)])
        return PartsSection.Row(
            kind: allowance.kind.rawValue.capitalized,
            label: label,
            name: label == allowance.name ? nil : allowance.name,
            tier: allowance.tier.rawValue,
            bars: bars(allowance, id, snapshot),
            note: note(allowance),
            resetLink: mayChange ? "/dashboard/users/\(figures.user)?\(link)#reset-part" : nil
        )
    }

    private func bars(_ allowance: ReportedAllowance, _ id: String, _ snapshot: UsageSnapshot) -> [PartsSection.Bar] {
        func bar(
            _ name: String,
            _ used: Int,
            held: Int,
            of limit: Int?,
            in place: String,
            resets: Instant?
        ) -> PartsSection.Bar {
            let text = NumberText.grouped(used) + (limit.map { " of \(NumberText.grouped($0))" } ?? "")
            let messages = limit ?? used == 1 ? "message" : "messages"
            let unit = "\(messages) in \(place)" + (held > 0 ? ", \(NumberText.grouped(held)) held" : "")
            let title = "\(allowance.label ?? allowance.name): \(text) \(unit)"
            return PartsSection.Bar(
                used: text,
                unit: unit,
                svg: limit.map { limit in
                    let tier = Tier(used: used + held, limit: limit, plan: snapshot.plan)
                    return self.bar("\(id)-\(name)", title, used: used, held: held, of: limit, tier, snapshot.plan)
                },
                resets: resets.map { TimeText($0) }
            )
        }
        let period = bar(
            "period",
            allowance.used,
            held: allowance.held,
            of: allowance.limit,
            in: allowance.limit == nil ? "this period, without a limit" : "this period",
            resets: allowance.limit == nil ? nil : snapshot.availableAgainAt
        )
        guard let limit = allowance.windowLimit, let used = allowance.windowUsed else { return [period] }
        let seconds = snapshot.plan.limits
            .first { $0.kind == allowance.kind && ($0.kind == .member || $0.name == allowance.name) }?.window?.seconds
        let length = seconds.map { " of \(NumberText.duration($0))" } ?? ""
        let opens = allowance.windowResetsAt == nil ? ", which opens with a message" : ""
        let window = bar(
            "window",
            used,
            held: allowance.windowHeld ?? 0,
            of: limit,
            in: "the window\(length)\(opens)",
            resets: allowance.windowResetsAt
        )
        return [period, window]
    }

    private func note(_ allowance: ReportedAllowance) -> String? {
        let weight = allowance.weight > 1 ? "A message takes \(allowance.weight) of the user’s messages." : nil
        let fallback = allowance.fallback.map { "When it is used up, \($0) is offered." }
        let sentences = [weight, fallback].compactMap(\.self)
        return sentences.isEmpty ? nil : sentences.joined(separator: " ")
    }

    /// The model or member that is shown alone; nil for all, and for several that have the same name.
    var partAlone: MessageParts? {
        guard partSearch != nil, let shown = partsShown.first, partsShown.count == 1 else { return nil }
        return MessageParts(shown.kind, named: shown.name)
    }

    /// - Parameter value: the rejected choice; nil is the model or member that is shown.
    /// - Returns: nil unless a model or a member is shown alone.
    func resetChoice(selected value: String?) -> UserPage.PartChoice? {
        choice("reset-part", "What to reset", all: "All messages of the period", partsShown, selected: value)
    }

    /// The same for windows: nil unless that of the model or member is open.
    func windowChoice(selected value: String?) -> UserPage.PartChoice? {
        choice(
            "window-part",
            "Which window",
            all: answer?.snapshot.hasOpenWindow == true ? "That of all messages" : nil,
            partsShown.filter { $0.windowResetsAt != nil },
            selected: value
        )
    }

    private func choice(
        _ id: String,
        _ label: String,
        all: String?,
        _ allowances: [ReportedAllowance],
        selected value: String?
    ) -> UserPage.PartChoice? {
        guard partSearch != nil else { return nil }
        let parts = allowances.compactMap { allowance in
            MessageParts(allowance.kind, named: allowance.name).map { parts in
                (value: parts.formValue, text: "Only \(allowance.choiceName)")
            }
        }
        guard let first = parts.first else { return nil }
        let choices = (all.map { [(value: "", text: $0)] } ?? []) + parts
        return UserPage.PartChoice(
            id: id,
            label: label,
            options: choices.map {
                UserPage.Option(value: $0.value, text: $0.text, isSelected: $0.value == value ?? first.value)
            }
        )
    }
}

extension ReportedAllowance {
    /// Where it is shown alone. An id is too long for a menu, and the section above has it.
    var choiceName: String { kind == .member ? "this member" : "the model \((label ?? name).isolated)" }

    /// What is taken of the fuller limit; 0 without a limit.
    fileprivate var fullness: Double {
        func share(_ used: Int, _ limit: Int?) -> Double {
            limit.map { $0 == 0 ? 1 : Double(used) / Double($0) } ?? 0
        }
        return max(share(used + held, limit), share((windowUsed ?? 0) + (windowHeld ?? 0), windowLimit))
    }
}
