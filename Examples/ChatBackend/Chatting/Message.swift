/// What somebody said. Never logged, never stored outside of this process.
struct Message: Sendable, Equatable, Encodable {
    enum Role: String, Sendable, Encodable {
        case user, assistant
    }

    /// Of what a user says, by the browser: the same message sent again has it again. A UUID in lower case.
    let id: String
    let role: Role
    let text: String
}
