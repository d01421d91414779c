import HeadroomServer
import Hummingbird
import LineProtocol
import NIOCore

/// What is known of a request while it is answered.
struct HTTPContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The connection.
    let channel: (any Channel)?
    /// Of the token that came with the request; nil without one.
    var identity: Identity?
    /// What the request may ask. `Authenticating` sets it; nothing until then.
    var permissions: Permissions = .anonymous

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}
