#!/usr/bin/env python3
"""retained.py FILE.gcdump: what each object retains, computed by networkx: a line for each object, by rising address: address and bytes, or `-` for an
object that no root reaches. With --types, what the objects of each type retain together: name, module and bytes of what the root reaches, and does not
reach once these objects are removed. Reads files as dotnet-gcdump writes them. Needs networkx, but not for --types."""

import re
import struct
import sys


class File:
    def __init__(self, data):
        self.data, self.at = data, 0

    def read(self, layout):
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def text(self):
        (units,) = self.read("i")
        characters = []
        for _ in range(max(units, 0)):
            first = self.data[self.at]
            length = 1 if first < 0x80 else 2 if first < 0xE0 else 3
            characters.append(self.data[self.at : self.at + length].decode("utf-8", "surrogatepass"))
            self.at += length
        return "".join(characters)

    def object_type(self):
        assert self.read("BBB") == (4, 4, 1)
        self.read("ii")
        name = self.text()
        assert self.read("B") == (6,)
        return name

    def number(self):
        """Seven bits a byte, the most significant first, signed."""
        bits = 0
        count = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            bits, count = bits << 7 | byte & 0x7F, count + 7
            if byte < 0x80:
                return bits - (1 << count) if bits >> (count - 1) else bits


def of_types(root, references, size, type_of, names, has_address):
    """Types of one name and module are one, and the classes of sizes that the tool adds to names are none."""
    keys = [(re.sub(r" \(Bytes > \d+[KM]\)$", "", name), re.split(r"[/\\]", module or "")[-1]) for name, module in names]

    def reached(removed):
        seen, waiting = set(), [root]
        while waiting:
            node = waiting.pop()
            if node not in seen and (not has_address[node] or keys[type_of[node]] != removed):
                seen.add(node)
                waiting += references[node]
        return seen

    whole = reached(None)
    for key in sorted({keys[type_of[node]] for node in range(len(size)) if has_address[node]}):
        print(*key, sum(size[node] for node in whole - reached(key)), sep="\t")


def main(path, by_type):
    with open(path, "rb") as file:
        dump = File(file.read())
    assert dump.text() == "!FastSerialization.1"
    assert (dump.object_type(), dump.object_type()) == ("GCHeapDump", "Graphs.MemoryGraph")
    _, root, types = dump.read("qii")
    sizes, names = [], []
    for _ in range(types):
        name = dump.text()
        sizes += dump.read("i")
        names.append((name, dump.text()))
    (nodes,) = dump.read("i")
    labels = dump.read(f"{nodes}I")
    (length,) = dump.read("i")
    blob = File(dump.data[dump.at : dump.at + length])
    dump.at += length
    assert dump.read("i") == (nodes,)
    addresses = dump.read(f"{nodes}Q")

    references = [[] for _ in range(nodes)]
    size, type_of = [0] * nodes, [0] * nodes
    for node, label in enumerate(labels):
        blob.at = label
        of = blob.number()
        type_of[node] = of >> 1
        size[node] = blob.number() if of & 1 else sizes[of >> 1]
        for _ in range(blob.number()):
            references[node].append(node + blob.number())
    has_address = [address and label for address, label in zip(addresses, labels)]
    if by_type:
        return of_types(root, references, size, type_of, names, has_address)

    import networkx

    graph = networkx.DiGraph((node, to) for node in range(nodes) for to in references[node])
    dominators = networkx.immediate_dominators(graph, root)
    dominators.pop(root, None)
    retained = {node: size[node] for node in dominators}
    retained[root] = size[root]
    # Every node behind its dominator: the depth in the tree.
    tree = networkx.DiGraph((dominator, node) for node, dominator in dominators.items())
    for node in reversed(list(networkx.bfs_tree(tree, root))):
        if node != root:
            retained[dominators[node]] += retained[node]
    for address, node in sorted((address, node) for node, address in enumerate(addresses) if address and labels[node]):
        print(f"{address:x} {retained.get(node, '-')}")


main(sys.argv[-1], sys.argv[1] == "--types")
