import HTTPTypes
import Hummingbird
import LineProtocol

/// Reads a form that a browser sent, once it is certain that it is one of ours.
struct FormReading: Sendable {
    let reading: BodyDecoder
    let reception: Reception

    /// - Returns: the fields by name.
    /// - Throws: 415 where it is no form in UTF-8, 403 where another site may have sent it, or our page is older than this process.
    func fields(_ request: Request, _ context: HTTPContext, _ visitor: Visitor) async throws -> [String: String] {
        let authority = request.head.authority
        guard Origin.isOurs(request.headers[.origin], fetchSite: request.headers[.fetchSite], authority: authority)
        else {
            throw Problem.foreignForm
        }
        let type = request.headers[.contentType] ?? ""
        guard type.lowercased().hasPrefix("application/x-www-form-urlencoded") else {
            throw Problem(.unsupportedMediaType, code: "BADREQUEST", "this takes a form, as the page sends it")
        }
        let body = try await reading.read(request, context)
        guard BodyEncoding.isUTF8(body.readableBytesView) else { throw BodyEncoding.notUTF8 }
        guard let fields = FormFields.parse(body.readableBytesView) else {
            throw Problem(.badRequest, code: "BADREQUEST", "the form could not be read")
        }
        guard let seal = fields["seal"], reception.seals.isValid(seal, "form", for: visitor.name) else {
            throw Problem.foreignForm
        }
        return fields
    }
}

extension Problem {
    static let foreignForm = Problem(
        .forbidden,
        code: "FORBIDDEN",
        "this form was not sent by a page of this service, or the service was started anew since; load the page again and "
            + "send it once more"
    )
}

extension Request {
    /// What stands behind the question mark, as a browser writes a form that is fetched: with a plus for a space. What is
    /// malformed says nothing.
    var query: [String: String] { FormFields.parse((uri.query ?? "").utf8) ?? [:] }
}

extension HTTPField.Name {
    static let fetchSite = HTTPField.Name("Sec-Fetch-Site")!
}

extension Reception {
    func frame(_ title: String, _ visitor: Visitor) -> Frame {
        Frame(
            title: title,
            formSeal: seals.seal("form", for: visitor.name),
            signedInAs: visitor.hasSession ? visitor.identity?.name : nil
        )
    }
}
