import ArgumentParser
import Engine
import OperatorConsole
import Postgres
import ServiceCore
import StoreEvents

struct ProductCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "product",
        abstract: "Map stores' products to plans, or to messages.",
        discussion: """
            Connects to the database, not to a service. The database login must be granted headroom_operator or own \
            the schema. A mapping applies from the next event. Exit status 1 if the database refuses, 69 if it cannot \
            be reached.
            """,
        subcommands: [ProductMapCommand.self, ProductListCommand.self, ProductUnmapCommand.self]
    )
}

struct ProductMapCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "map",
        abstract: "Map a product to a plan, or one that is bought once to messages; replaces an earlier mapping.",
        discussion: """
            With --entitlement instead of a product: products without a mapping of their own, whose event names the \
            entitlement, get its plan. Applied events do not change. Events that failed for lack of this mapping are \
            applied by headroom events replay.
            """
    )

    @Argument(help: ArgumentHelp("\(Stores.names), or a billing system's name.")) var source: String
    @Argument(help: "The store's name for the product.") var product: String?
    @Option(help: "The store's name for an entitlement, instead of a product.") var entitlement: String?
    @Option(help: "The plan; the table headroom.plans has all plans.") var plan: String?
    @Option(help: "The plan while its trial runs (default: trial).") var trialPlan: String?
    @Option(help: "The plan while an introductory offer runs (default: --plan).") var introPlan: String?
    @Option(help: "Messages that a one-time product grants (0 to 1000000).") var messages: Int?
    @Option(help: "Days that the plan of a one-time product lasts (1 to 36500; default: the store's end, or for good).")
    var days: Int?
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard DirectEvent.isSource(source) else {
            throw ValidationError("a source is \(Stores.names), or a billing system's name in lower case")
        }
        guard (product == nil) != (entitlement == nil) else {
            throw ValidationError("name a product, or give --entitlement")
        }
        guard (1...255).contains((product ?? entitlement ?? "").count) else {
            throw ValidationError("a product, or an entitlement, has 1 to 255 characters")
        }
        guard entitlement == nil || messages == nil && days == nil else {
            throw ValidationError("--messages and --days are for products, not for an entitlement")
        }
        guard plan != nil || messages != nil else {
            throw ValidationError("--plan must be given, or --messages for a one-time product")
        }
        guard plan != nil || (trialPlan == nil && introPlan == nil && days == nil) else {
            throw ValidationError("--trial-plan, --intro-plan and --days need --plan")
        }
        if let messages, !(0...1_000_000).contains(messages) {
            throw ValidationError("--messages must be 0 to 1000000")
        }
        if let days, !(1...36_500).contains(days) { throw ValidationError("--days must be 1 to 36500") }
    }

    func run() async throws {
        let mapping = ProductCatalog.Mapping(
            source: source,
            product: product,
            entitlement: entitlement,
            plan: plan,
            trialPlan: trialPlan,
            introPlan: introPlan,
            messages: messages,
            days: days
        )
        let entitlement = entitlement
        let failed = try await ProductAccess.run(database) { catalog in
            if let entitlement { try catalog.map(entitlement: entitlement, mapping) } else { try catalog.map(mapping) }
        }
        let name = product ?? "entitlement \(entitlement ?? "")"
        try StandardOutput.print(
            "\(source) \(LogfmtHandler.escaped(name)) is mapped to \(ProductMapCommand.text(of: mapping))"
        )
        if failed > 0 {
            let events = failed == 1 ? "event" : "events"
            try StandardOutput.print(
                "\(failed) kept \(events) failed for lack of this mapping; apply with headroom events replay --failed"
            )
        }
    }

    private static func text(of mapping: ProductCatalog.Mapping) -> String {
        let days = mapping.days.map { " for \($0) \($0 == 1 ? "day" : "days") if it is bought once" } ?? ""
        return [mapping.plan.map { "plan \($0)\(days)" }, mapping.messages.map { "\($0) messages" }]
            .compactMap(\.self).joined(separator: " and ")
    }
}

struct ProductListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the products that are mapped."
    )

    @Flag(help: "JSON on standard output, an object a line, instead of a table.") var json = false
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
        let table = ProductTable(
            try await ProductAccess.run(database) { try $0.list() }.map { mapping in
                ProductTable.Row(
                    source: mapping.source,
                    product: mapping.product,
                    entitlement: mapping.entitlement,
                    plan: mapping.plan,
                    trialPlan: mapping.trialPlan,
                    introPlan: mapping.introPlan,
                    messages: mapping.messages,
                    days: mapping.days
                )
            }
        )
        try StandardOutput.print(
            list: table.rows,
            asJSON: json,
            else: table.rows.isEmpty
                ? "no product is mapped; map one with headroom product map" : table.text(width: Terminal.size?.width)
        )
    }
}

struct ProductUnmapCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unmap",
        abstract: "Remove the mapping of a product.",
        discussion: "Applied events do not change. Later events that name the product fail, and are stored."
    )

    @Argument(help: ArgumentHelp("\(Stores.names), or a billing system's name.")) var source: String
    @Argument(help: "The store's name for the product.") var product: String?
    @Option(help: "The store's name for an entitlement, instead of a product.") var entitlement: String?
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard (product == nil) != (entitlement == nil) else {
            throw ValidationError("name a product, or give --entitlement")
        }
    }

    func run() async throws {
        let (source, product, entitlement) = (source, product ?? "", entitlement)
        let wasMapped = try await ProductAccess.run(database) { catalog in
            if let entitlement {
                try catalog.unmap(source: source, entitlement: entitlement)
            } else {
                try catalog.unmap(source: source, product: product)
            }
        }
        guard wasMapped else {
            throw CommandFailure.notFound("it is not mapped; headroom product list shows the mappings")
                .exitCodeAfterPrinting()
        }
        let name = entitlement.map { "entitlement \($0)" } ?? product
        try StandardOutput.print("\(source) \(LogfmtHandler.escaped(name)) is no longer mapped")
    }
}

/// Runs the product commands' work on the database.
private enum ProductAccess {
    static func run<Value: Sendable>(
        _ database: DatabaseOptions,
        _ work: @escaping @Sendable (ProductCatalog) throws -> Value
    ) async throws -> Value {
        try await StoreCommands.run(database) { database in try work(ProductCatalog(database: database)) }
    }
}
