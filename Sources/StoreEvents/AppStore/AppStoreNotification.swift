/// App Store Server Notifications V2, verified and as they are kept.
public enum AppStoreNotification: StoreAdapter {
    public static func translate(payload: JSONValue) throws(StoreEventError) -> StoreNotification {
        throw .malformed("the App Store's notifications are not translated yet")
    }
}
