import Billing

/// A price as answers show it: a decimal number without rounding, and the currency.
struct Price: Equatable {
    /// The amount in units of the currency, with at least the currency's own decimal places: "9.99", "1200" yen.
    let amount: String
    /// The code by ISO 4217: "USD".
    let currency: String

    /// Currencies without a smaller unit, and with a thousandth (ISO 4217). All others have hundredths.
    private static let withoutDecimals: Set = [
        "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF",
        "XOF", "XPF",
    ]
    private static let withThreeDecimals: Set = ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"]
    /// Stripe gives amounts of these in hundredths, as before they lost their smaller unit
    /// (https://docs.stripe.com/currencies#special-cases).
    private static let hundredthsAtStripe: Set = ["ISK", "UGX"]
    private static let thousandthsMaximum: Int64 = 1_000_000_000_000_000

    /// - Parameter thousandths: the amount in thousandths of the currency's unit; the App Store calls them milliunits.
    /// - Returns: nil for a negative or very large amount, and for anything but a code of three letters.
    init?(thousandths: Int64?, currency: String?) {
        guard let thousandths, (0...Price.thousandthsMaximum).contains(thousandths), let currency,
            let code = Price.code(currency)
        else { return nil }
        let decimals = Price.withoutDecimals.contains(code) ? 0 : Price.withThreeDecimals.contains(code) ? 3 : 2
        var fraction = String(thousandths % 1_000)
        fraction = String(repeating: "0", count: 3 - fraction.utf8.count) + fraction
        while fraction.utf8.count > decimals, fraction.last == "0" { fraction.removeLast() }
        amount = fraction.isEmpty ? "\(thousandths / 1_000)" : "\(thousandths / 1_000).\(fraction)"
        self.currency = code
    }

    /// - Parameter units: the amount in units of the currency, such as 9.99. RevenueCat converts prices, so it is
    ///   rounded to thousandths.
    init?(units: Double?, currency: String?) {
        guard let units, (0...1e12).contains(units) else { return nil }
        self.init(thousandths: Int64((units * 1_000).rounded()), currency: currency)
    }

    /// - Parameter minorUnits: Stripe's amount: cents, or yen.
    init?(stripe minorUnits: Double?, currency: String?) {
        guard let minorUnits, (0...1e12).contains(minorUnits), let code = currency.flatMap(Price.code) else {
            return nil
        }
        let hasHundredths = Price.hundredthsAtStripe.contains(code)
        let thousandths =
            Price.withoutDecimals.contains(code) && !hasHundredths
            ? 1_000 : Price.withThreeDecimals.contains(code) ? 1.0 : 10
        self.init(thousandths: Int64((minorUnits * thousandths).rounded()), currency: code)
    }

    /// - Returns: the code in upper case; Stripe sends lower case.
    private static func code(_ text: String) -> String? {
        let isCode = text.utf8.count == 3 && text.utf8.allSatisfy { (0x41...0x5A).contains($0 & 0xDF) }
        return isCode ? text.uppercased() : nil
    }
}

extension BillingEffect.Sale {
    init(store: String? = nil, _ price: Price?) {
        self.init(store: store, price: price?.amount, currency: price?.currency)
    }
}
