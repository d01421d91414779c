/// The name that `word` is most likely a misspelling of; nil if none is close.
public func nearestName(to word: String, among names: [String]) -> String? {
    let word = word.lowercased()
    // At most a third of the letters may differ, so that `reprot` has a match and any other word has none.
    let nearest = names.map { (name: $0, distance: editDistance(from: word, to: $0)) }.min { $0.distance < $1.distance }
    guard let nearest, nearest.distance <= max(1, nearest.name.count / 3) else {
        return word.count >= 2 ? names.first { $0.hasPrefix(word) } : nil
    }
    return nearest.name
}

/// The Damerau-Levenshtein distance: letters left out, added, replaced or swapped with their neighbour.
private func editDistance(from word: String, to name: String) -> Int {
    let (word, name) = (Array(word), Array(name))
    var beforeLast: [Int] = []
    var last = Array(0...name.count)
    for (row, letter) in word.enumerated() {
        var current = [row + 1]
        for (column, other) in name.enumerated() {
            var errors = min(last[column + 1] + 1, current[column] + 1, last[column] + (letter == other ? 0 : 1))
            if row > 0, column > 0, letter == name[column - 1], word[row - 1] == other {
                errors = min(errors, beforeLast[column - 1] + 1)
            }
            current.append(errors)
        }
        (beforeLast, last) = (last, current)
    }
    return last[name.count]
}
