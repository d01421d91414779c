/// The name that a person who typed `word` probably meant; nil where none is close.
public func nearestName(to word: String, among names: [String]) -> String? {
    let word = word.lowercased()
    // A third of the letters may be wrong: `reprot`, `stat`, but not any word at all.
    let nearest = names.map { (name: $0, distance: typingErrors(from: word, to: $0)) }.min { $0.distance < $1.distance }
    guard let nearest, nearest.distance <= max(1, nearest.name.count / 3) else {
        return word.count >= 2 ? names.first { $0.hasPrefix(word) } : nil
    }
    return nearest.name
}

/// How many letters were left out, added, mistaken or swapped with their neighbour: Damerau and Levenshtein's distance.
private func typingErrors(from word: String, to name: String) -> Int {
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
