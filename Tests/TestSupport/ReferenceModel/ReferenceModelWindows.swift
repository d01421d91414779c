import Usage

extension ReferenceModel {
    /// A user's last window. A user has one at most, whatever the plan and the period.
    struct Window: Sendable {
        var openedAt: Instant
        var endsAt: Instant
        var used: Int
        /// Of the row that contains it.
        var period: BillingPeriod

        /// As a plan sees it whose windows last this long.
        func shortened(to seconds: Int) -> Window {
            var window = self
            window.endsAt = min(endsAt, openedAt.advanced(bySeconds: Int64(seconds)))
            return window
        }
    }

    /// The window that is open now under a plan; nil without one.
    func openWindow(of user: UserID, under plan: Plan, at now: Instant) -> Window? {
        guard let seconds = plan.window?.seconds, let window = windows[user]?.shortened(to: seconds),
            window.endsAt > now
        else { return nil }
        return window
    }

    /// A change to a plan with shorter windows ends an open one earlier, for good.
    mutating func shortenWindow(of user: UserID, under plan: Plan) {
        guard let seconds = plan.window?.seconds else { return }
        windows[user] = windows[user]?.shortened(to: seconds)
    }

    /// Adds the window to a snapshot that has none.
    func addWindow(to snapshot: inout UsageSnapshot, of user: UserID, at now: Instant) {
        guard let limit = snapshot.plan.window?.messages else { return }
        let open = openWindow(of: user, under: snapshot.plan, at: now)
        snapshot.window = UsageWindow(limit: limit, openedAt: open?.openedAt, endsAt: open?.endsAt)
        snapshot.windowUsed = open?.used ?? 0
        snapshot.windowHeld = open.map { heldInWindow(openedAt: $0.openedAt, by: user, at: now) } ?? 0
    }

    private func heldInWindow(openedAt: Instant, by user: UserID, at now: Instant) -> Int {
        let active = (keys[user] ?? [:]).values.filter { $0.windowOpenedAt == openedAt && $0.isActive(at: now) }
        return min(active.reduce(0) { $0 + $1.messages }, UsageSnapshot.countMaximum)
    }

    /// Stores the open window of a snapshot that is written, in the row of its period.
    mutating func writeWindow(_ snapshot: UsageSnapshot, of user: UserID) {
        guard let window = snapshot.window else { return }
        guard let openedAt = window.openedAt, let endsAt = window.endsAt else {
            // The row keeps no window that the plan has ended.
            if windows[user]?.period == snapshot.period { windows[user] = nil }
            return
        }
        windows[user] = Window(
            openedAt: openedAt,
            endsAt: endsAt,
            used: snapshot.windowUsed,
            period: snapshot.period
        )
    }

    /// Changes the count of the window of a key, if it is still open. The window then is in the row of the open period,
    /// if there is one.
    mutating func changeWindow(of key: UsedKey, used: Int, user: UserID, at now: Instant) {
        var snapshot = snapshot(of: user, at: now)
        guard let openedAt = key.windowOpenedAt, snapshot.window?.openedAt == openedAt else { return }
        snapshot.windowUsed = max(0, snapshot.windowUsed + used)
        if rows[user]?[snapshot.period] != nil {
            writeWindow(snapshot, of: user)
        } else {
            windows[user]?.used = snapshot.windowUsed
            windows[user]?.endsAt = snapshot.window?.endsAt ?? now
        }
    }

    /// `RESETUSAGE` of the open period closes the window, wherever it is; that of another one closes the window in its
    /// row.
    mutating func closeWindow(of user: UserID, resetting period: BillingPeriod, at now: Instant) {
        guard let window = windows[user] else { return }
        let isOpenPeriod = snapshot(of: user, at: now).period == period
        guard window.period == period || isOpenPeriod && window.endsAt > now else { return }
        close(window, of: user)
    }

    /// `RESETUSAGE <user> window`.
    public mutating func closeWindow(_ user: UserID, at now: Instant) -> Answer {
        restoreForgotten(user, at: now)
        if let window = windows[user], window.endsAt > now { close(window, of: user) }
        return Answer(user: user, status: .ok, snapshot: snapshot(of: user, at: now))
    }

    private mutating func close(_ window: Window, of user: UserID) {
        windows[user] = nil
        for (key, used) in keys[user] ?? [:] where used.windowOpenedAt == window.openedAt {
            keys[user]?[key]?.windowOpenedAt = nil
        }
    }
}
