extension EmbeddedTexts {
    /// A file of this module, which is a part of the program.
    static subscript(name: String) -> String {
        guard let text = all[name] else { preconditionFailure("no file has the name \(name)") }
        return text
    }
}
