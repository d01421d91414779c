/// The settings of notifications to the product's backend (docs/notifications.md).
package struct NotificationSettings: SettingGroup {
    package let url = Setting("notifications-url", .privateURL) {
        "where notifications are sent when a user reaches a tier; without it, none are recorded. Requires "
            + "notifications-secret or notifications-secret-file"
    }
    package let secrets = Setting<Secrets>("notifications-secret", file: "secrets") {
        "the secret that signs notifications: whsec_ and 24 to 64 bytes in Base64. Of several, separated by spaces or "
            + "commas, each signs"
    }
    package let sweepSeconds = Setting("notifications-sweep-seconds", default: 600, .number(1...86_400, "s")) {
        "how often the table of usage is read for users who have reached a tier otherwise than by a message to this "
            + "service, such as by an SQL function"
    }

    package static func check(_ values: SettingValues<NotificationSettings>) throws(InvalidSetting) {
        guard values.url == nil || !values.secrets.isEmpty else {
            throw InvalidSetting(text: "notifications-url needs notifications-secret or notifications-secret-file")
        }
    }
}
