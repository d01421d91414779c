import Hummingbird
import LineProtocol
import NIOCore
import ServiceCore

/// The state of a request while it is answered.
struct HTTPContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// The request's connection; nil in tests.
    let channel: (any Channel)?
    /// Who the request's bearer token belongs to; nil without a token.
    var identity: Identity?
    /// `AuthenticationMiddleware` sets them; nothing is permitted before.
    var permissions: Permissions = .anonymous

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }
}
