"""The expected figures of a move between two layouts, from explicit index lists: what each rank
holds, and the least bytes."""
import itertools
import math

import harness


class Layout:
    """Placements over a mesh: `ranks` in row-major order; dims of size 1 count like any other."""

    def __init__(self, mesh, placements, shape, ranks=None):
        self.mesh, self.placements, self.shape = tuple(mesh), tuple(placements), tuple(shape)
        self.coordinates = harness.coordinates(mesh)
        self.ranks = list(ranks) if ranks is not None else list(range(len(self.coordinates)))
        self.coordinate_of = dict(zip(self.ranks, self.coordinates))
        self.dims = {rank: harness.owned(shape, mesh, placements, c) for rank, c in self.coordinate_of.items()}
        self.elements = {rank: set(itertools.product(*dims)) for rank, dims in self.dims.items()}

    def held(self, rank):
        return self.elements.get(rank, set())

    def partial_dims(self):
        return [d for d, p in enumerate(self.placements) if p.startswith("P") and self.mesh[d] > 1]

    def mesh_text(self):
        text = "x".join(map(str, self.mesh))
        return text if self.ranks == list(range(len(self.ranks))) else f"{text}@[{','.join(map(str, self.ranks))}]"


class Move:
    """A move of one tensor from one layout to another."""

    def __init__(self, source, target, size):
        self.source, self.target, self.size = source, target, size
        self.same = (source.mesh, source.ranks) == (target.mesh, target.ranks)
        self.kept = [d for d in source.partial_dims() if self.same and source.placements[d] == target.placements[d]]
        self.reduced = [d for d in source.partial_dims() if d not in self.kept]
        self.made = [d for d in target.partial_dims() if d not in self.kept]
        self.ranks = sorted(set(source.ranks) | set(target.ranks))
        self.without_partial = not self.reduced and not self.made

    def arguments(self):
        words = ["--mesh", self.source.mesh_text(), "--shape", "x".join(map(str, self.source.shape)) or "scalar", "--from",
                 ",".join(self.source.placements), "--to", ",".join(self.target.placements)]
        return words + ([] if self.same else ["--to-mesh", self.target.mesh_text()])

    def is_shortcut(self):
        """Whether Shard becomes Partial(sum) by each rank keeping its elements: no other placement
        changes, and the removed cuts are the last of their dims."""
        taking = [d for d in self.made if self.source.placements[d].startswith("S")]
        if not self.same or not taking or any(self.target.placements[d] != "P" for d in taking):
            return False
        if any(s != t for d, (s, t) in enumerate(zip(self.source.placements, self.target.placements)) if d not in taking and self.source.mesh[d] > 1):
            return False
        left = [(d, p[2]) for d, p in enumerate(self.target.placements) if p.startswith("S") and self.source.mesh[d] > 1]
        return all(d < taken for taken in taking for d, dim in left if dim == self.source.placements[taken][2])

    def lacks(self, rank):
        """Returns the elements that a rank has to receive in a move without Partial."""
        return self.target.held(rank) - self.source.held(rank)

    def has_value(self, rank):
        """Whether the rank's terms hold the value: new Partial sums and products have it at
        coordinate 0 alone."""
        coordinate = self.target.coordinate_of[rank]
        return all(coordinate[d] == 0 for d in self.made if self.target.placements[d] in ("P", "P(prod)"))

    def kept_key(self, coordinate):
        return tuple(coordinate[d] for d in self.kept)

    def least_for(self, element, key):
        """Returns the least number of times that all ranks together receive an element, for one combination of
        kept coordinates."""
        owners = {r for r in self.target.ranks if element in self.target.held(r) and self.has_value(r) and
                  (not self.kept or self.kept_key(self.target.coordinate_of[r]) == key)}
        holders = {r for r in self.source.ranks if element in self.source.held(r) and self.kept_key(self.source.coordinate_of[r]) == key}
        terms = math.prod(self.source.mesh[d] for d in self.reduced)
        return terms + len(owners) - 1 - bool(owners & holders) if terms > 1 else len(owners - holders)

    def least_total(self):
        if self.is_shortcut():
            return 0
        keys = list(itertools.product(*(range(self.source.mesh[d]) for d in self.kept)))
        elements = itertools.product(*map(range, self.source.shape))
        return self.size * sum(self.least_for(e, key) for e in elements for key in keys)

    def gathered(self, rank):
        """Returns the bytes that a rank of the target receives when everything is reduced in rings,
        gathered and sliced."""
        local = self.size * len(self.source.held(rank))
        rings = [self.source.mesh[d] for d in self.source.partial_dims()] if rank in self.source.ranks else []
        return sum(2 * (n - 1) * local // n for n in rings) + self.size * math.prod(self.source.shape) - local

    def differing_dims(self, pairs):
        """Returns the mesh dims in which the coordinates of any pair of ranks differ."""
        if not self.same:
            return []
        place = self.source.coordinate_of
        return [d for d in range(len(self.source.mesh)) if any(place[a][d] != place[b][d] for a, b in pairs)]
