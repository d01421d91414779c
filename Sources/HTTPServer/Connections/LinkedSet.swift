/// Elements in the order of insertion. Appending, removing any element and finding the first take constant time.
struct LinkedSet<Element: Hashable> {
    private struct Links {
        var previous: Element?
        var next: Element?
    }

    private(set) var first: Element?
    private var last: Element?
    private var links: [Element: Links] = [:]

    var count: Int { links.count }

    /// Changes nothing if the set contains the element.
    mutating func append(_ element: Element) {
        guard links[element] == nil else { return }
        links[element] = Links(previous: last, next: nil)
        if let last { links[last]?.next = element } else { first = element }
        last = element
    }

    /// Changes nothing if the set does not contain the element.
    mutating func remove(_ element: Element) {
        guard let removed = links.removeValue(forKey: element) else { return }
        if let previous = removed.previous { links[previous]?.next = removed.next } else { first = removed.next }
        if let next = removed.next { links[next]?.previous = removed.previous } else { last = removed.previous }
    }
}
