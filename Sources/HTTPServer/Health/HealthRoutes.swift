import Hummingbird

/// Answers the health checks that `RequestAdmissionHandler` does not answer itself: those that follow an unanswered
/// request on the same connection, and those with a body.
struct HealthRoutes: RouteProvider {
    let health: HealthResponder

    func add(to router: Router<HTTPContext>) {
        for check in HealthCheck.allCases {
            router.get(RouterPath(check.rawValue)) { [health] _, _ in
                let reply = health.reply(to: check)
                return Response(
                    status: reply.status,
                    headers: reply.fields,
                    body: ResponseBody(byteBuffer: reply.body)
                )
            }
        }
    }
}
