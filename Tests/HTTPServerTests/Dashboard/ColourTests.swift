import Foundation
import Testing

@testable import HTTPServer

@Suite("Colours")
struct ColourTests {
    /// Light and dark: the colours by name.
    private let schemes: [[String: String]]

    init() throws {
        let pattern = try Regex("--([a-z-]+): (#[0-9a-f]{6});", as: (Substring, Substring, Substring).self)
        schemes = EmbeddedTexts["style.css"].components(separatedBy: ":root {")
            .dropFirst().prefix(2).map { part in
                let block = part.prefix { $0 != "}" }
                return Dictionary(
                    uniqueKeysWithValues: block.matches(of: pattern).map { (String($0.output.1), String($0.output.2)) }
                )
            }
    }

    /// WCAG 2.2, "relative luminance".
    private func luminance(_ colour: String) -> Double {
        let channels = stride(from: 1, to: 7, by: 2).map { place -> Double in
            let start = colour.index(colour.startIndex, offsetBy: place)
            let value = Double(Int(colour[start..<colour.index(start, offsetBy: 2)], radix: 16) ?? 0) / 255
            return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
        }
        return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]
    }

    private func contrast(_ one: String, _ other: String, in scheme: [String: String]) throws -> Double {
        let pair = [luminance(try #require(scheme[one])), luminance(try #require(scheme[other]))].sorted()
        return (pair[1] + 0.05) / (pair[0] + 0.05)
    }

    @Test("text has a contrast of 4.5 to 1 to its background, in light and dark")
    func texts() throws {
        #expect(schemes.count == 2)
        let tiers = ["silent", "gentle", "prominent", "blocked"]
        let pairs =
            [
                ("ink", "ground"), ("ink", "surface"), ("ink", "raised"), ("muted", "ground"), ("muted", "surface"),
                ("muted", "raised"),
                ("accent", "surface"), ("accent", "ground"), ("on-accent", "accent"), ("on-accent", "blocked"),
                ("blocked-text", "surface"),
            ]
            + tiers.flatMap { [("\($0)-text", "\($0)-soft"), ("ink", "\($0)-soft")] }
        for scheme in schemes {
            for (text, behind) in pairs {
                let contrast = try contrast(text, behind, in: scheme)
                #expect(contrast >= 4.5, "\(text) on \(behind): \(contrast)")
            }
        }
    }

    @Test("shapes have a contrast of 3 to 1")
    func drawn() throws {
        for scheme in schemes {
            for name in ["silent", "gentle", "prominent", "blocked", "accent", "edge", "focus"] {
                for behind in ["surface", "ground"] {
                    let contrast = try contrast(name, behind, in: scheme)
                    #expect(contrast >= 3, "\(name) on \(behind): \(contrast)")
                }
            }
        }
    }
}
