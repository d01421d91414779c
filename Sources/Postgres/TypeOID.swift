/// The identifier of a PostgreSQL type (pg_type.oid). The identifiers of built-in types never change.
public struct TypeOID: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt32

    @inlinable
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    @inlinable public static var bool: TypeOID { TypeOID(rawValue: 16) }
    @inlinable public static var bytea: TypeOID { TypeOID(rawValue: 17) }
    @inlinable public static var int64: TypeOID { TypeOID(rawValue: 20) }
    @inlinable public static var int16: TypeOID { TypeOID(rawValue: 21) }
    @inlinable public static var int32: TypeOID { TypeOID(rawValue: 23) }
    @inlinable public static var text: TypeOID { TypeOID(rawValue: 25) }
    @inlinable public static var timestamptz: TypeOID { TypeOID(rawValue: 1184) }
    @inlinable public static var uuid: TypeOID { TypeOID(rawValue: 2950) }
    @inlinable public static var boolArray: TypeOID { TypeOID(rawValue: 1000) }
    @inlinable public static var byteaArray: TypeOID { TypeOID(rawValue: 1001) }
    @inlinable public static var int32Array: TypeOID { TypeOID(rawValue: 1007) }
    @inlinable public static var textArray: TypeOID { TypeOID(rawValue: 1009) }
    @inlinable public static var int64Array: TypeOID { TypeOID(rawValue: 1016) }
    @inlinable public static var timestamptzArray: TypeOID { TypeOID(rawValue: 1185) }
    @inlinable public static var uuidArray: TypeOID { TypeOID(rawValue: 2951) }
}

extension TypeOID {
    /// PostgreSQL's name of the type, for messages.
    var name: String {
        switch self {
        case .bool: "boolean"
        case .bytea: "bytea"
        case .int16: "smallint"
        case .int32: "integer"
        case .int64: "bigint"
        case .text: "text"
        case .timestamptz: "timestamp with time zone"
        case .uuid: "uuid"
        case .byteaArray: "bytea[]"
        case .int32Array: "integer[]"
        case .int64Array: "bigint[]"
        case .textArray: "text[]"
        default: "number \(rawValue) of pg_type"
        }
    }
}

/// Converts between PostgreSQL's microseconds since 2000-01-01 and microseconds since 1970-01-01.
///
/// PostgreSQL's last year, 294276, does not fit an Int64 that counts from 1970. Both conversions saturate, and the ends
/// of Int64 mean infinity and -infinity in both; so no external value can trap.
@usableFromInline
enum Timestamp {
    @inlinable static var epochMicroseconds: Int64 { 946_684_800_000_000 }

    @inlinable
    static func toPostgres(_ microsecondsSince1970: Int64) -> Int64 {
        guard microsecondsSince1970 != .max else { return .max }
        let (value, overflow) = microsecondsSince1970.subtractingReportingOverflow(epochMicroseconds)
        return overflow ? .min : value
    }

    @inlinable
    static func fromPostgres(_ microsecondsSince2000: Int64) -> Int64 {
        guard microsecondsSince2000 != .min else { return .min }
        let (value, overflow) = microsecondsSince2000.addingReportingOverflow(epochMicroseconds)
        return overflow ? .max : value
    }
}
