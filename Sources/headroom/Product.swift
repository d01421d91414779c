import ArgumentParser
import Billing
import Engine
import HeadroomServer
import OperatorConsole
import Postgres

struct Product: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Map a store's products to plans, or to messages.",
        discussion: """
            Works on the database, without a service. The database login must be granted headroom_operator or own the \
            schema. A mapping applies from the next event. Exit status 1 when the database refuses, 69 when it cannot \
            be reached.
            """,
        subcommands: [ProductMap.self, ProductList.self, ProductUnmap.self]
    )
}

struct ProductMap: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "map",
        abstract: "Map a product to a plan, or a product that is bought once to messages; again, it maps it anew.",
        discussion: """
            With --entitlement in a product's place: products that are not mapped themselves, and whose event names the \
            entitlement, are on its plan. What was applied stays. Events that failed for the lack of it wait for headroom \
            events replay.
            """
    )

    @Argument(help: ArgumentHelp("\(Stores.names), or a billing system's name.")) var source: String
    @Argument(help: "The store's name for the product.") var product: String?
    @Option(help: "The store's name for an entitlement, in place of a product.") var entitlement: String?
    @Option(help: "The plan that it is; select plan from headroom.plans lists them.") var plan: String?
    @Option(help: "The plan while its trial runs; without it, trial.") var trialPlan: String?
    @Option(help: "The plan while an introductory offer runs; without it, that of --plan.") var introPlan: String?
    @Option(help: "Messages that it grants where it is bought once (0 to 1000000; 0 grants none).") var messages: Int?
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
        guard entitlement == nil || messages == nil else { throw ValidationError("an entitlement is for a plan") }
        guard plan != nil || messages != nil else {
            throw ValidationError("--plan must be given, or --messages for a product that is bought once")
        }
        guard plan != nil || (trialPlan == nil && introPlan == nil) else {
            throw ValidationError("--trial-plan and --intro-plan belong to --plan")
        }
        if let messages, !(0...1_000_000).contains(messages) {
            throw ValidationError("--messages must be 0 to 1000000")
        }
    }

    func run() async throws {
        let mapped = ProductRegister.Product(
            source: source,
            product: product,
            entitlement: entitlement,
            plan: plan,
            trialPlan: trialPlan,
            introPlan: introPlan,
            messages: messages
        )
        let entitlement = entitlement
        let waiting = try await ProductAccess.run(database) { register in
            if let entitlement { try register.map(entitlement: entitlement, mapped) } else { try register.map(mapped) }
        }
        let name = product ?? "entitlement \(entitlement ?? "")"
        try StandardOutput.print(
            "\(source) \(LogfmtHandler.harmless(name)) is mapped to \(ProductMap.text(of: mapped))"
        )
        if waiting > 0 {
            let events = waiting == 1 ? "event" : "events"
            try StandardOutput.print(
                "\(waiting) kept \(events) failed for the lack of it: headroom events replay --failed"
            )
        }
    }

    private static func text(of product: ProductRegister.Product) -> String {
        [product.plan.map { "plan \($0)" }, product.messages.map { "\($0) messages" }]
            .compactMap(\.self).joined(separator: " and ")
    }
}

struct ProductList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the products that are mapped."
    )

    @Flag(help: "JSON on standard output, an object a line, instead of a table.") var json = false
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
        let table = ProductTable(
            try await ProductAccess.run(database) { try $0.list() }.map { product in
                ProductTable.Product(
                    source: product.source,
                    product: product.product,
                    entitlement: product.entitlement,
                    plan: product.plan,
                    trialPlan: product.trialPlan,
                    introPlan: product.introPlan,
                    messages: product.messages
                )
            }
        )
        if json {
            try StandardOutput.print(lines: try table.products.map { try $0.jsonLine() })
        } else {
            try StandardOutput.print(
                table.products.isEmpty ? "no product is mapped; headroom product map does it" : table.text
            )
        }
    }
}

struct ProductUnmap: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unmap",
        abstract: "Map a product to nothing.",
        discussion: "What was applied stays. An event that names the product fails from then on, and is kept."
    )

    @Argument(help: ArgumentHelp("\(Stores.names), or a billing system's name.")) var source: String
    @Argument(help: "The store's name for the product.") var product: String?
    @Option(help: "The store's name for an entitlement, in place of a product.") var entitlement: String?
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard (product == nil) != (entitlement == nil) else {
            throw ValidationError("name a product, or give --entitlement")
        }
    }

    func run() async throws {
        let (source, product, entitlement) = (source, product ?? "", entitlement)
        let wasMapped = try await ProductAccess.run(database) { register in
            if let entitlement {
                try register.unmap(source: source, entitlement: entitlement)
            } else {
                try register.unmap(source: source, product: product)
            }
        }
        guard wasMapped else {
            throw CommandEnd.noData("it is not mapped; headroom product list has what is").exit()
        }
        let name = entitlement.map { "entitlement \($0)" } ?? product
        try StandardOutput.print("\(source) \(LogfmtHandler.harmless(name)) is mapped to nothing")
    }
}

/// The way of these commands to the database.
private enum ProductAccess {
    static func run<Value: Sendable>(
        _ database: DatabaseOptions,
        _ work: @escaping @Sendable (ProductRegister) throws -> Value
    ) async throws -> Value {
        try await StoreCommands.run(database) { url in try work(ProductRegister(databaseURL: url)) }
    }
}
