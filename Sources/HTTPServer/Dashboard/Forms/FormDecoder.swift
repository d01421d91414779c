import HTTPTypes
import Hummingbird
import LineProtocol

/// Reads a form of the dashboard and verifies that one of the dashboard's own pages sent it.
struct FormDecoder: Sendable {
    let bodies: BodyDecoder
    let authenticator: ViewerAuthenticator

    /// - Returns: the fields by name.
    /// - Throws: `Problem`: 415 unless the body is a form in UTF-8; 403 if another site may have sent it, or if the
    ///   service has restarted since the page was loaded.
    func fields(_ request: Request, _ context: HTTPContext, _ viewer: Viewer) async throws -> [String: String] {
        let (origin, site) = (request.headers[.origin], request.headers[.fetchSite])
        let authority = request.head.authority
        guard RequestOrigin.isSameOrigin(origin, fetchSite: site, authority: authority, allowsNull: true) else {
            throw Problem.foreignForm
        }
        let type = request.headers[.contentType] ?? ""
        guard type.lowercased().hasPrefix("application/x-www-form-urlencoded") else {
            throw Problem(.unsupportedMediaType, code: "BADREQUEST", "the body must be a form, as the page sends it")
        }
        let body = try await bodies.read(request, context)
        guard BodyEncoding.isUTF8(body.readableBytesView) else { throw BodyEncoding.notUTF8 }
        guard let fields = FormFields.parse(body.readableBytesView) else {
            throw Problem(.badRequest, code: "BADREQUEST", "the form is malformed")
        }
        guard let token = fields["csrf"], authenticator.signer.isValid(csrfToken: token, for: viewer.cookie) else {
            throw Problem.foreignForm
        }
        return fields
    }
}

extension Problem {
    static let foreignForm = Problem(
        .forbidden,
        code: "FORBIDDEN",
        "this form was not sent by a page of this service, or the service has restarted since; reload the page and "
            + "send the form again"
    )
}

extension Request {
    /// The query as browsers encode a form; empty if it is malformed.
    var query: [String: String] { FormFields.parse((uri.query ?? "").utf8) ?? [:] }
}

extension HTTPField.Name {
    static let fetchSite = HTTPField.Name("Sec-Fetch-Site")!
}
