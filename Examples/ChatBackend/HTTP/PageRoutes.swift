import HeadroomClient
import Hummingbird

/// What browsers open and load.
struct PageRoutes {
    let files: PageFiles
    let people: [Person]

    func add(to router: Router<ChatContext>) {
        let (files, people) = (files, people)
        router.get("/") { request, _ in
            // Anew each time, because it offers somebody new.
            PeoplePage(people: people).asset.response(to: request)
        }
        router.get("/chat/{user}") { request, context -> Response in
            guard context.user != nil else { throw Problem.noUser }
            guard let page = files.asset("index.html") else { throw Problem.notFound }
            return page.response(to: request)
        }
        router.get("/assets/{file}") { request, context -> Response in
            guard let name = context.parameters.get("file"), let asset = files.asset(name) else {
                throw Problem.notFound
            }
            return asset.response(to: request)
        }
    }
}

extension ChatContext {
    /// Who is named in the path.
    var user: UserID? { parameters.get("user").flatMap { UserID($0) } }
}
