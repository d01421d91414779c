import Engine
import Logging
import ServiceCore
import ServiceLifecycle
import Synchronization

/// Records and delivers notifications, apart from the messages that cause them.
///
/// Every instance records those of its own messages. One instance at a time delivers them. It also sweeps the table
/// for users whose notification is not recorded yet.
package struct NotificationService: Service, CustomStringConvertible {
    package let description = "notifications"

    /// The time between two looks for something to do.
    private static let pollInterval = Duration.seconds(1)
    private static let backlogInterval = Duration.seconds(5)
    /// How long the service waits for answers to sent notifications when it shuts down. Another instance, or the next
    /// start, sends those without an answer again.
    private static let drainTimeout = Duration.seconds(1)

    private let outbox: NotificationOutbox
    private let url: String
    private let signer: NotificationSigner
    private let sweepInterval: Duration
    private let crossedUsers: CrossedUsers
    private let metrics: NotificationMetrics
    private let logger: Logger
    private let state = State()

    private final class State: Sendable {
        let delivers = Atomic(false)
        let isFailing = Atomic(false)
    }

    /// - Parameter dependencies: those of a service whose settings have a URL for notifications.
    private init(_ dependencies: ServiceDependencies, url: String, _ signer: NotificationSigner) {
        outbox = NotificationOutbox(dependencies.engine.configuration, logger: dependencies.logger)
        self.url = url
        self.signer = signer
        sweepInterval = .seconds(dependencies.configuration.settings.notifications.sweepSeconds)
        crossedUsers = dependencies.engine.crossedUsers ?? CrossedUsers()
        metrics = dependencies.notificationMetrics ?? NotificationMetrics()
        logger = dependencies.logger
    }

    /// Reads the file of secrets.
    ///
    /// - Returns: nil if no notifications are sent.
    package static func maker(
        _ settings: SettingValues<NotificationSettings>
    ) throws(SettingFile.Unusable) -> HeadroomService.NotifierMaker? {
        guard let url = settings.url else { return nil }
        let signer = try NotificationSigner(settings)
        return { NotificationService($0, url: url, signer) }
    }

    package func run() async throws {
        let sender = NotificationSender(url: url, signer)
        async let sessions: Void = outbox.run()
        await cancelWhenGracefulShutdown {
            async let recording: Void = record()
            async let delivering: Void = deliver(over: sender)
            async let sweeping: Void = sweep()
            async let measuring: Void = measure()
            _ = await (recording, delivering, sweeping, measuring)
        }
        // The engine has stopped by now. What cannot be recorded is left to the next sweep.
        _ = try? await recordCrossed()
        outbox.close()
        await sessions
        await sender.close()
    }

    /// Repeats `work` until the task is cancelled.
    ///
    /// - Parameter work: returns how long to wait.
    private func untilCancelled(_ work: () async throws -> Duration) async {
        while !Task.isCancelled {
            var pause = NotificationService.pollInterval
            do {
                pause = try await work()
            } catch {
                // The pool has logged what an operator can do something about.
                logger.debug("notifications wait for the database", metadata: ["error": "\(error)"])
            }
            try? await Task.sleep(for: pause)
        }
    }

    // MARK: Recording

    private func record() async {
        await untilCancelled {
            try await recordCrossed()
            return NotificationService.pollInterval
        }
    }

    private func recordCrossed() async throws {
        while true {
            let users = crossedUsers.take(atMost: NotificationOutbox.usersMaximum)
            guard !users.isEmpty else { return }
            do {
                _ = try await outbox.record(users)
            } catch {
                crossedUsers.add(users)
                throw error
            }
        }
    }

    private func sweep() async {
        await untilCancelled {
            guard state.delivers.load(ordering: .relaxed) else { return NotificationService.pollInterval }
            let recorded = try await outbox.sweep()
            logger.debug("swept the table of usage", metadata: ["notifications.recorded": "\(recorded)"])
            return sweepInterval
        }
    }

    private func measure() async {
        await untilCancelled {
            do {
                metrics.update(try await outbox.backlog())
            } catch {
                metrics.update(nil)
                throw error
            }
            return NotificationService.backlogInterval
        }
    }

    // MARK: Delivering

    private func deliver(over sender: NotificationSender) async {
        await untilCancelled {
            let due = try await outbox.due(atMost: NotificationSender.requestsMaximum)
            state.delivers.store(due != nil, ordering: .relaxed)
            note(stranger: outbox.stranger)
            guard let due, !due.isEmpty else { return NotificationService.pollInterval }
            // Requests are not cancelled at once, and what was delivered is written in any case.
            let sending = Task { await send(due, over: sender) }
            let attempts = await withTaskCancellationHandler {
                await sending.value
            } onCancel: {
                Task {
                    try? await Task.sleep(for: NotificationService.drainTimeout)
                    sending.cancel()
                }
            }
            await Task { await write(attempts) }.value
            return .zero
        }
        state.delivers.store(false, ordering: .relaxed)
    }

    /// Logs once that a login holds up all notifications, and once that it does so no more.
    private func note(stranger: String?) {
        guard metrics.isHeldUp != (stranger != nil) else { return }
        metrics.update(isHeldUp: stranger != nil)
        guard let stranger else { return logger.notice("notifications are held up no more") }
        logger.warning(
            "notifications are held up: a login that may not send any has the lock for it; end its session",
            metadata: ["database.session": "\(stranger)"]
        )
    }

    /// - Returns: the attempts that have a result.
    private func send(
        _ due: [NotificationOutbox.Due],
        over sender: NotificationSender
    ) async -> [NotificationOutbox.Attempt] {
        await withTaskGroup(of: NotificationOutbox.Attempt?.self) { requests in
            for notification in due {
                requests.addTask {
                    guard let result = await sender.send(notification) else { return nil }
                    return NotificationOutbox.Attempt(notification, result, jitter: .random(in: 0..<1))
                }
            }
            var attempts: [NotificationOutbox.Attempt] = []
            for await case let attempt? in requests { attempts.append(attempt) }
            return attempts
        }
    }

    /// Writes the results. It tries for some seconds, because notifications without a result are sent again.
    private func write(_ attempts: [NotificationOutbox.Attempt]) async {
        for attempt in attempts {
            metrics.count(delivered: attempt.problem == nil)
            log(attempt)
        }
        for _ in 0..<5 {
            do {
                return try await outbox.write(attempts)
            } catch {
                if error == .closed { return }
                logger.debug("results of notifications wait for the database", metadata: ["error": "\(error)"])
                try? await Task.sleep(for: NotificationService.pollInterval)
            }
        }
    }

    private func log(_ attempt: NotificationOutbox.Attempt) {
        guard let problem = attempt.problem else {
            if state.isFailing.exchange(false, ordering: .relaxed) {
                logger.notice("notifications are delivered again")
            }
            return
        }
        let metadata: Logger.Metadata = ["notification.id": "\(attempt.id)", "problem": "\(problem)"]
        let isFirst = !state.isFailing.exchange(true, ordering: .relaxed)
        guard attempt.delay != nil else {
            return logger.warning(
                "a notification is not tried again; headroom notifications replay sends it",
                metadata: metadata
            )
        }
        logger.log(
            level: isFirst ? .warning : .debug,
            "a notification was not delivered; it is tried again",
            metadata: metadata
        )
    }
}
