"""What an active party writes below its gradients, so that the sums it gets back tell which rows are in them.

Magic numbers (weng2022, Algorithm 1). Rows are put into groups of b - 1; a row's group identifier is a one in base b at its
group's place, so that a sum of identifiers counts, digit by digit, the rows of each group. Random bits above tell rows of
one group apart as far as they can. `supergroups` cut the groups into k sections with random bits of their own.
Rows get a number in order, or by distribution: evenly over the rows sorted by gradient, which is what the active party knows of
all of them.

Labelled groups (ours). A digit holds the sum of its rows' labels, not their count: labels are chosen so that few sets of rows
have the same sum, and the digit is as wide as the sum of all. One row, one bit, label 1 is the exact code; 28 rows in
13 bits are more than twice as many, and need the bins of a column to be read together.

Row bits (ours). Who may send any gradient needs no low bits: powers of two in place of gradients name the rows of a sum.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np

from plumbob.bundle import Array
from plumbob.errors import BadInput, one_of, suggest, whole
from plumbob.federation import IntArray
from plumbob.protocols.shared.gradient_plaintexts import HiddenCode, Layout

Choice = Literal["in_order", "by_distribution"]
CHOICES = ("in_order", "by_distribution")  # of the rows that get a number
SPACE = 960  # bits below a 64-bit gradient in a plaintext of 1,024
_TABLE_6 = {(2, 4): 944}  # the one capacity of Table 6 that 15 random bits for each supergroup do not explain


class MagicNumbers(HiddenCode):
    """Algorithm 1. The identifiers' bits and the random bits are by default those that Table 6's capacities come from.

    Algorithm 1 as `printed` (960 - 30 k bits of identifiers, 30 random bits for each supergroup) has other capacities than
    Table 6: nine of ten there are those of 960 - 15 k bits, the tenth that of 944.

    >>> MagicNumbers().capacity(2), MagicNumbers(base=2, supergroups=4).capacity(2)
    (1860, 1888)
    >>> MagicNumbers.printed(base=2, supergroups=2).capacity(2)
    1800
    """

    kind = "magic numbers"
    noted_as = "magic"

    def __init__(
        self,
        *,
        base: int = 2,
        supergroups: int = 2,
        identifier_bits: int | None = None,
        random_bits: int | None = None,
        rows: Choice = "in_order",
    ) -> None:
        self.base = whole("magic numbers: base", base, 2, 2**16)
        self.supergroups = whole("magic numbers: supergroups", supergroups, 1, 32)
        default = _TABLE_6.get((base, supergroups), SPACE - 15 * supergroups)
        self.identifier_bits = whole(
            "magic numbers: bits of identifiers", default if identifier_bits is None else identifier_bits, 1, 8_192
        )
        if not self.groups:
            raise BadInput(
                f"magic numbers: {identifier_bits} bits are too few for a digit of base {base} per supergroup"
            )
        left = min(30, max(0, SPACE - self.identifier_bits) // self.supergroups)
        self.random_bits = whole("magic numbers: random bits", left if random_bits is None else random_bits, 0, 60)
        one_of("magic numbers: rows", rows, CHOICES)
        self.rows = rows

    @classmethod
    def printed(
        cls, *, base: int = 2, supergroups: int = 2, random_bits: int = 30, rows: Choice = "in_order"
    ) -> MagicNumbers:
        """Algorithm 1 as printed: each supergroup has random bits, and the identifiers have what is left of 960 bits (line 5)."""
        bits = SPACE - whole("magic numbers: random bits", random_bits, 0, 60) * whole(
            "magic numbers: supergroups", supergroups, 1, 32
        )
        return cls(base=base, supergroups=supergroups, identifier_bits=max(1, bits), random_bits=random_bits, rows=rows)

    @property
    def groups(self) -> int:
        """Of one supergroup in one plaintext (l, by supergroup)."""
        return math.floor(self.identifier_bits / self.supergroups / math.log2(self.base) + 1e-9)

    @property
    def bits(self) -> int:
        carry = (self.groups * (self.base - 1)).bit_length() if self.random_bits else 0
        return self.identifier_bits + self.supergroups * self.random_bits + carry

    def capacity(self, channels: int) -> int:
        """Rows that get a magic number."""
        return channels * self.supergroups * self.groups * (self.base - 1)

    def codes(
        self, tree: int, rows: IntArray, channels: int, rng: np.random.Generator, gradients: IntArray | None = None
    ) -> tuple[list[dict[int, int]], dict[str, Array]]:
        """The first rows of the tree, as many as fit, group by group; every tree the same ones. By distribution: as many, evenly
        over the rows sorted by gradient."""
        count = min(len(rows), self.capacity(channels))
        chosen = np.arange(count)
        if self.rows == "by_distribution" and gradients is not None:
            chosen = np.argsort(gradients, kind="stable")[np.arange(count) * len(rows) // count]
        group, section, channel = _nested(count, self.base - 1, self.groups, self.supergroups)
        random = rng.integers(2**self.random_bits, size=count)
        made: list[dict[int, int]] = [{} for _ in range(channels)]
        for place in range(count):
            digit = self.base ** int(section[place] * self.groups + group[place])
            above = int(random[place]) << int(self.identifier_bits + section[place] * self.random_bits)
            made[channel[place]][int(chosen[place])] = digit + above
        memory: dict[str, Array] = {
            "magic": np.stack([rows[chosen], channel, section, group, random], axis=1),
            "magic settings": np.array(
                [self.base, self.supergroups, self.groups, self.identifier_bits, self.random_bits]
            ),
        }
        return made, memory

    def identified(self) -> str:
        usual = MagicNumbers(base=self.base, supergroups=self.supergroups).settings
        later = [f", {key}={value!r}" for key, value in self.settings.items() if value != usual[key]]
        return f"MagicNumbers(base={self.base}, supergroups={self.supergroups}{''.join(later)})"


class LabelledGroups(HiddenCode):
    """Groups of `size` rows in digits of `width` bits; each tree codes the rows after those of the tree before.

    >>> LabelledGroups().capacity(2), LabelledGroups(size=28, width=13).capacity(2)
    (1920, 4088)
    """

    kind = "labelled groups"
    noted_as = "groups"

    def __init__(self, *, size: int = 1, width: int = 1, space: int = SPACE) -> None:
        self.size = whole("labelled groups: rows in a group", size, 1, 1_024)
        self.width = whole("labelled groups: bits of a digit", width, 1, 60)
        self.space = whole("labelled groups: bits", space, width, 8_192)
        labels_of(size, width)

    @property
    def groups(self) -> int:
        return self.space // self.width

    @property
    def bits(self) -> int:
        return self.groups * self.width

    def capacity(self, channels: int) -> int:
        """Rows that get a code in one tree."""
        return channels * self.groups * self.size

    def codes(
        self, tree: int, rows: IntArray, channels: int, rng: np.random.Generator, gradients: IntArray | None = None
    ) -> tuple[list[dict[int, int]], dict[str, Array]]:
        count = min(len(rows), self.capacity(channels))
        places = (np.arange(count) + tree * count) % len(rows)
        group, channel, _ = _nested(count, self.size, self.groups, channels)
        labels = labels_of(self.size, self.width)[np.arange(count) % self.size]
        made: list[dict[int, int]] = [{} for _ in range(channels)]
        for place, c, g, label in zip(places.tolist(), channel.tolist(), group.tolist(), labels.tolist(), strict=True):
            made[c][place] = label << (g * self.width)
        memory: dict[str, Array] = {
            "groups": np.stack([rows[places], channel, group, labels], axis=1),
            "group settings": np.array([self.width]),
        }
        return made, memory

    def identified(self) -> str:
        return f"LabelledGroups(size={self.size}, width={self.width})"


class RowBits(HiddenCode):
    """One row, one bit of the gradients' own slots: powers of two in place of g and h. Each tree has other rows, until all had
    their turn; the trees after those are honest. Sums use a slot but its sign, so 2 (slot - 1) rows have room in a tree."""

    kind = "powers of two"
    noted_as = "powers"

    @property
    def bits(self) -> int:
        return 0  # nothing stands below the gradients

    def codes(
        self, tree: int, rows: IntArray, channels: int, rng: np.random.Generator, gradients: IntArray | None = None
    ) -> tuple[list[dict[int, int]], dict[str, Array]]:
        return [], {}

    def instead(self, tree: int, rows: IntArray, layout: Layout) -> tuple[Array, Array, dict[str, Array]] | None:
        room = layout.slot - 1
        places = np.arange(2 * room * tree, min(len(rows), 2 * room * (tree + 1)))
        if not len(places):
            return None
        slot, bit = np.divmod(places - places[0], room)
        sent: list[Array] = [np.zeros(len(rows), dtype=object) for _ in range(2)]  # of whole numbers beyond 64 bits
        for place, s, b in zip(places.tolist(), slot.tolist(), bit.tolist(), strict=True):
            sent[s][place] = 1 << b
        return sent[0], sent[1], {self.noted_as: np.stack([rows[places], slot, bit], axis=1)}


def _nested(count: int, rows: int, groups: int, sections: int) -> tuple[IntArray, IntArray, IntArray]:
    """For running numbers: the group of `rows` rows, the section of `groups` groups, the part of `sections` sections."""
    group = np.arange(count) // rows
    section = group // groups
    return group % groups, section % sections, section // sections


@lru_cache(maxsize=64)
def labels_of(size: int, width: int) -> IntArray:
    """Distinct labels whose sum fits into `width` bits and whose small sets rarely have equal sums: the best of 200 draws."""
    if size == 1:
        return np.array([1], dtype=np.int64)
    largest = 2**width - 1
    if size * (size + 1) // 2 > largest:
        raise BadInput(f"labelled groups: {size} distinct labels cannot sum to less than 2^{width}")
    rng = np.random.default_rng([size, width])
    span = max(size, int(1.9 * largest / size))
    best, fewest = np.arange(1, size + 1), math.inf
    for _ in range(200):
        labels = np.sort(rng.choice(np.arange(1, span + 1), size=size, replace=False))
        if labels.sum() > largest:
            continue
        collisions = _collisions(labels)
        if collisions < fewest:
            best, fewest = labels, collisions
    return best.astype(np.int64)


def _collisions(labels: IntArray) -> float:
    """Pairs of sets of one to three labels with equal sums; smaller sets count more, as they occur more often."""
    one, two = labels, (labels[:, None] + labels)[np.triu_indices(len(labels), 1)]
    sums = np.bincount(np.concatenate([one, two]))
    return float(np.sum(sums * (sums - 1)))


CODES: dict[str, type[HiddenCode]] = {"magic_numbers": MagicNumbers, "labelled_groups": LabelledGroups}


def code_named(name: object) -> HiddenCode:
    """A code with its default settings, for plans."""
    if not isinstance(name, str) or name not in CODES:
        raise BadInput(f"no code '{name}'{suggest(str(name), list(CODES))}")
    return CODES[name]()
