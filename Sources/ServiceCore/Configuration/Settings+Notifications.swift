import LineProtocol

/// The settings of notifications to the product's backend (docs/notifications.md).
extension Settings {
    package static let notificationsURL = Setting<String?>(
        localOrSecureURL: "notifications-url",
        "where notifications are sent when a user reaches a tier; without it, none are recorded. Requires "
            + "notifications-secret or notifications-secret-file"
    )
    package static let notificationsSecret = Setting<[Secret]>(
        "notifications-secret",
        "the secret that signs notifications: whsec_ and 24 to 64 bytes in Base64. Of several, separated by spaces or "
            + "commas, each signs"
    )
    package static let notificationsSecretFile = Setting<String?>(
        "notifications-secret-file",
        "path",
        "file with the secrets of notifications-secret, one per line"
    )
    static let notificationsSweep = Setting<Int>(
        "notifications-sweep-seconds",
        default: 600,
        1...86_400,
        unit: "s",
        "how often the table of usage is read for users who have reached a tier otherwise than by a message to this "
            + "service, such as by an SQL function"
    )

    public static let ofNotifications: [any SettingDefinition] = [
        notificationsURL, notificationsSecret, notificationsSecretFile, notificationsSweep,
    ]
}
