import Usage

/// Finds rows of a file that are about the same user and period, and the same model or member if they name one, as an
/// earlier one. It holds eight bytes for each row until all are known, and then compares the rows with equal digests.
struct RepeatedRows {
    private struct Row: Hashable {
        var user: UserID
        var period: String?
        var part: MessagePart?
    }

    private var digests: [UInt64] = []

    mutating func add(_ row: ImportRow) {
        digests.append(RepeatedRows.digest(row))
    }

    /// Returns the digests that more than one row has, and forgets all others.
    mutating func takeCandidates() -> Candidates {
        digests.sort()
        var repeated: Set<UInt64> = []
        for (digest, next) in zip(digests, digests.dropFirst()) where digest == next { repeated.insert(digest) }
        digests = []
        return Candidates(digests: repeated)
    }

    struct Candidates {
        fileprivate let digests: Set<UInt64>
        /// The line in which each row was first.
        private var lines: [Row: Int] = [:]

        fileprivate init(digests: Set<UInt64>) {
            self.digests = digests
        }

        var isEmpty: Bool { digests.isEmpty }

        /// Call it for all rows again, in their order.
        ///
        /// - Returns: a problem if an earlier row is about the same.
        mutating func problem(_ row: ImportRow) -> ImportProblem? {
            guard digests.contains(RepeatedRows.digest(row)) else { return nil }
            let key = Row(user: row.user, period: row.period, part: row.part)
            guard let first = lines[key] else {
                lines[key] = row.line
                return nil
            }
            let same = "user and period" + (row.part.map { " and \($0.kind)" } ?? "")
            return ImportProblem(
                line: row.line,
                column: ImportColumn.user.rawValue,
                "line \(first) is about the same \(same); keep one of them"
            )
        }
    }

    private static func digest(_ row: ImportRow) -> UInt64 {
        // The digest is FNV-1a of the period and the part, beginning with the hash of the user.
        var hash = row.user.hash ^ 0xCBF2_9CE4_8422_2325
        let name = row.part?.name ?? ""
        for byte in "\(row.period ?? "") \(name)".utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return hash
    }
}
