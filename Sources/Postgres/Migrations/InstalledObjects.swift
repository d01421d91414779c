/// An object that differs from what was installed.
public struct AlteredObject: Sendable, Hashable, CustomStringConvertible {
    /// The kind and name of the object, such as `function public.set_plan(uuid,text)`.
    public let object: String
    /// What differs, such as `EXECUTE to eve was granted`.
    public let difference: String

    public var description: String { "\(object): \(difference)" }
}

/// The record of what a migration has installed: for each object its owner, rights, settings and a checksum of its
/// definition.
extension MigrationRecord {
    /// Replaces the record by the present state.
    func recordInstalledObjects(_ owner: SchemaOwner) throws(PostgresError) {
        try connection.execute(
            """
            DELETE FROM \(quotedSchema).installed_objects;
            INSERT INTO \(quotedSchema).installed_objects (object, facts)
            \(owner.installedObjects)
            """,
            deadline: deadline
        )
    }

    /// Compares the present state with the record. It only reads the catalog and the record: nothing that could have
    /// been altered is executed.
    func alteredObjects(_ owner: SchemaOwner) throws(PostgresError) -> [AlteredObject] {
        let result = try connection.query(
            """
            WITH present AS (
            \(owner.installedObjects)
            ),
            differences AS (
                SELECT coalesce(installed.object, present.object) AS object, difference.text
                FROM \(quotedSchema).installed_objects AS installed
                FULL JOIN present ON present.object = installed.object
                CROSS JOIN LATERAL (
                    SELECT 'it was dropped' WHERE present.object IS NULL
                    UNION ALL
                    -- Others than triggers have no effect by themselves.
                    SELECT 'it was added' WHERE installed.object IS NULL AND present.object LIKE 'trigger %'
                    UNION ALL
                    SELECT rights.value || ' was granted'
                    FROM jsonb_array_elements_text(present.facts -> 'rights') AS rights
                    WHERE NOT installed.facts -> 'rights' ? rights.value
                    UNION ALL
                    SELECT rights.value || ' was revoked'
                    FROM jsonb_array_elements_text(installed.facts -> 'rights') AS rights
                    WHERE NOT present.facts -> 'rights' ? rights.value
                    UNION ALL
                    SELECT CASE facts.key
                        WHEN 'definition' THEN 'the definition was changed'
                        ELSE format('%s is %s instead of %s', facts.key, present.facts ->> facts.key, facts.value)
                    END
                    FROM jsonb_each_text(installed.facts) AS facts
                    WHERE facts.key <> 'rights' AND facts.value <> present.facts ->> facts.key
                        -- Another version of PostgreSQL may write the same definition differently.
                        AND (
                            facts.key <> 'definition'
                            OR split_part(facts.value, ':', 1) = split_part(present.facts ->> facts.key, ':', 1)
                        )
                ) AS difference (text)
                WHERE EXISTS (SELECT FROM \(quotedSchema).installed_objects)
            )
            SELECT object, string_agg(text, ', ' ORDER BY text) FROM differences GROUP BY object ORDER BY object
            """,
            deadline: deadline
        )
        return (0..<result.rowCount).map { AlteredObject(object: result.text($0, 0), difference: result.text($0, 1)) }
    }
}
