import Usage

/// The page where a user's id is entered.
struct FindPage {
    var frame: Frame
    let hint: String
    /// More than any id has, so that none becomes another one when it is cut off.
    let lengthMaximum: Int
    /// The rejected input, to be corrected.
    let input: String
    let error: String?

    /// - Parameters:
    ///   - input: empty, or not a user's id.
    ///   - namespace: of users' names; nil where users are UUIDs only.
    init(_ frame: Frame, input: String, namespace: UserNamespace?) {
        self.frame = frame
        lengthMaximum = namespace == nil ? 64 : 256
        hint =
            namespace == nil
            ? "The id that your product uses: 8-4-4-4-12 hexadecimal digits."
            : "The id that your product uses, as it stands in your database."
        self.input = ActionForm.truncated(input, toScalars: lengthMaximum)
        error = input.isEmpty ? nil : FindPage.invalidID(namespace)
    }

    static func invalidID(_ namespace: UserNamespace?) -> String {
        namespace == nil
            ? "This is not a user id. A user id is a UUID: 8-4-4-4-12 hexadecimal digits, separated by dashes."
            : "This is not a user id. A user id has 1 to 255 bytes, and no spaces or control characters. It is not . or .."
    }
}

/// The page where a token is entered.
struct SignInPage {
    var frame: Frame
    var error: String?
    /// The page to show after signing in.
    var returnPath: String
    /// The link came from another site, so the browser left out the session cookie (SameSite=Strict) if it has one.
    var mayBeSignedIn: Bool
}

/// Asks for confirmation before anything is changed.
struct ConfirmPage {
    struct Field {
        var name: String
        var value: String
    }

    /// A word to be typed before an action that cannot be undone.
    struct TypedWord {
        var word: String
        var error: String?
    }

    var frame: Frame
    var user: String
    var action: String
    var heading: String
    var question: String
    var caveat: Notice?
    /// What changes and what stays.
    var effects: [String]
    var hasEffects: Bool
    var consequence: String
    var button: String
    /// A class of the stylesheet: a reset looks dangerous, a grant does not.
    var buttonClass: String
    var reason: String
    /// The fields of the action, to be sent again.
    var fields: [Field]
    /// The idempotency key of a grant: a form that is sent twice grants once.
    var key: String
    var usage: String?
    var typed: TypedWord?
}

/// An error, and what to do about it.
struct ProblemPage {
    var frame: Frame
    var heading: String
    var text: String
    var advice: String
}
