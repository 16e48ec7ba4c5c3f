"""Small pieces of English: lists, ordinals, runs of numbers."""

from collections.abc import Sequence


def join(parts: Sequence[str], word: str = "and") -> str:
    """ "a", "a and b", "a, b and c"."""
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def ordinal(number: int) -> str:
    """ "1st", "2nd", "3rd", "4th", "11th", "21st"."""
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def runs(values: Sequence[int]) -> list[tuple[int, int]]:
    """The first and last of each run of neighbours; a run of two counts as two runs of one."""
    found: list[tuple[int, int]] = []
    for value in values:
        if found and value == found[-1][1] + 1:
            found[-1] = (found[-1][0], value)
        else:
            found.append((value, value))
    split: list[tuple[int, int]] = []
    for first, last in found:
        split += [(first, first), (last, last)] if last == first + 1 else [(first, last)]
    return split
