/// RevenueCat's webhook events, as they are kept.
public enum RevenueCatEvent: StoreAdapter {
    public static func translate(payload: JSONValue) throws(StoreEventError) -> StoreNotification {
        throw .malformed("RevenueCat's events are not translated yet")
    }
}
