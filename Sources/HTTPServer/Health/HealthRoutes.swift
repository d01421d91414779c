import Hummingbird

/// The same answers where the question comes through the framework: behind another request that is not answered yet.
struct HealthRoutes: RouteCollecting {
    let health: Health

    func add(to router: Router<HTTPContext>) {
        for question in [Health.Question.alive, .ready] {
            router.get(RouterPath(question.rawValue)) { [health] _, _ in
                let answer = health.answer(question)
                return Response(
                    status: answer.status,
                    headers: answer.fields,
                    body: ResponseBody(byteBuffer: answer.body)
                )
            }
        }
    }
}
