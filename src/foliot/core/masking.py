"""Values that must not be seen, replaced wherever they appear in what leaves a worker.

A value is looked for as it is and as programs commonly write it: in JSON, in a URL, in base64 (also
as a part of something longer), in hexadecimal, as Python shows it, and line by line. Nothing of it
is left that is as long as a form of it. A text that ends in the first eight or more characters of a
form was probably cut there, and its end is masked as well.

A value of fewer than four characters is not masked: it would be found in everything. The work grows
with the length of the text, whoever chose the values: where it would not, more is masked instead.
"""

import base64
import html
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final
from urllib.parse import quote, quote_plus

from foliot.core.model import Json

CHARS_MIN: Final = 4
# Shorter parts of base64 turn up by chance, and so do shorter lines of a longer value.
BASE64_CHARS_MIN: Final = 6
LINE_CHARS_MIN: Final = 8
HEAD_CHARS: Final = 8
# Longer forms are looked for in blocks: what is left of a long value after a cut is found too.
BLOCK_CHARS: Final = 256
# To look for forms one by one costs about forms × (1024 + characters), for all at once about
# 512 × characters: measured, and rounded against the former, which a hostile text makes slower.
ONE_BY_ONE: Final = 1024
AT_ONCE: Final = 512
# Where forms of more lengths, or more forms, begin alike, all that follows is masked: nobody has
# such values by accident.
LENGTHS_MAX: Final = 8
ALIKE_MAX: Final = 64
# Deeper than anything that is kept.
DEPTH_MAX: Final = 64
_SIGNS: Final = "*•█"
_PRIVATE_USE: Final = range(0xE000, 0x110000)
# What different programs leave as it is in a URL.
_SAFE_SETS: Final = ("", "/", "!$&'()*+,;=:@/~", "!$'()*,:@/?;~")

Span = tuple[int, int]


class Masker:
    """Covers the given values."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {block for value in values for form in _forms(value) for block in _blocks(form)}
        # The shortest first: none is looked for in a text that is shorter.
        self._forms = sorted(forms, key=lambda form: (len(form), form))
        self._index = _Index(self._forms)
        self._heads = [(form[:HEAD_CHARS], form) for form in self._forms if len(form) > HEAD_CHARS]
        self.cover = _cover(self._forms)
        self.reach = len(self._forms[-1]) if self._forms else 0

    def mask(self, text: str) -> str:
        """`text` without the values, also without the beginning of one at its end."""
        spans = self.spans(text)
        is_many = len(self._heads) > self.reach
        tail = self._index.tail(text, self.reach) if is_many else self._tail(text)
        if tail < len(text):
            spans = _merged([*spans, (tail, len(text))])
        return self.covered(text, spans)

    def mask_bytes(self, data: bytes) -> bytes:
        text = data.decode("utf-8", "surrogateescape")
        return self.mask(text).encode("utf-8", "surrogateescape")

    def mask_json(self, value: Json, depth: int = 0) -> Json:
        """Every text, name and number in it."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, int | float):
            shown = repr(value)
            return self.mask(shown) if self.spans(shown) else value
        if depth > DEPTH_MAX:
            return self.cover
        if isinstance(value, dict):
            return {
                self.mask(str(key)): self.mask_json(inner, depth + 1)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.mask_json(inner, depth + 1) for inner in value]
        return self.cover

    def spans(self, text: str) -> list[Span]:
        """Where forms stand, those that touch taken together."""
        if len(self._forms) * (ONE_BY_ONE + len(text)) > AT_ONCE * len(text):
            return _merged(list(self._index.spans(text)))
        found: list[Span] = []
        for form in self._forms:
            if len(form) > len(text):
                break
            at = text.find(form)
            while at >= 0:
                found.append((at, at + len(form)))
                at = text.find(form, at + len(form))
        return _merged(found)

    def covered(self, text: str, spans: Sequence[Span]) -> str:
        if not spans:
            return text
        parts, at = [], 0
        for begin, end in spans:
            parts += [text[at:begin], self.cover]
            at = end
        return "".join([*parts, text[at:]])

    def _tail(self, text: str) -> int:
        """Where the beginning of a form begins that goes on to the end of the text."""
        first = len(text)
        for head, form in self._heads:
            at = text.find(head, max(0, len(text) - len(form) + 1))
            while 0 <= at < first:
                if form.startswith(text[at:]):
                    first = at
                    break
                at = text.find(head, at + 1)
        return first


class _Index:
    """Many forms by their first characters: a text is gone through once for all of them."""

    def __init__(self, forms: Sequence[str]) -> None:
        self._forms = frozenset(forms)
        self._by_head: dict[str, list[str]] = {}
        for form in forms:
            self._by_head.setdefault(form[:HEAD_CHARS], []).append(form)
        self._lengths = {
            head: sorted({len(form) for form in alike}) for head, alike in self._by_head.items()
        }
        # Of forms that are shorter than a head.
        self._short = sorted({len(form) for form in forms if len(form) < HEAD_CHARS})

    def spans(self, text: str) -> Iterator[Span]:
        for at in range(len(text)):
            for length in self._short:
                if text[at : at + length] in self._forms:
                    yield at, at + length
            lengths = self._lengths.get(text[at : at + HEAD_CHARS], ())
            if len(lengths) > LENGTHS_MAX:
                yield at, len(text)
                return
            for length in lengths:
                if text[at : at + length] in self._forms:
                    yield at, at + length

    def tail(self, text: str, reach: int) -> int:
        for at in range(max(0, len(text) - reach + 1), len(text) - HEAD_CHARS + 1):
            alike = self._by_head.get(text[at : at + HEAD_CHARS], ())
            if len(alike) > ALIKE_MAX or any(form.startswith(text[at:]) for form in alike):
                return at
        return len(text)


class StreamMasker:
    """Masks a text that comes in pieces, wherever they are cut; it keeps a little of it back."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = ""

    def feed(self, text: str) -> str:
        """What can be told by now."""
        self._held += text
        reach = self._masker.reach
        if len(self._held) < 2 * reach:  # so each character is looked at twice at the most
            return ""
        spans = self._masker.spans(self._held)
        # A form that begins before this has ended too.
        cut = len(self._held) - max(0, reach - 1)
        told = [span for span in spans if span[0] < cut]
        if told:
            cut = max(cut, told[-1][1])
        said, self._held = self._masker.covered(self._held[:cut], told), self._held[cut:]
        return said

    def rest(self) -> str:
        """What was kept back, at the end."""
        held, self._held = self._held, ""
        return self._masker.mask(held)


def _forms(value: str) -> Iterator[str]:
    """Every way in which it may be written, if it is long enough to be known again."""
    for text in {value, value.strip()}:
        if len(text) >= CHARS_MIN:
            yield from (form for form in _written(text) if len(form) >= CHARS_MIN)
            yield from (form for form in _in_base64(text) if len(form) >= BASE64_CHARS_MIN)
    for line in {line.strip() for line in value.splitlines()}:
        if len(line) >= LINE_CHARS_MIN:
            yield line
            yield json.dumps(line)[1:-1]
            yield repr(line)[1:-1]


def _written(text: str) -> Iterator[str]:
    yield text
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield once.replace("/", "\\/")
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    for safe in _SAFE_SETS:
        quoted = quote(text, safe=safe)
        yield quoted
        yield _lower_escapes(quoted)
        yield quote(quoted, safe=safe)
    yield quote_plus(text)
    yield _lower_escapes(quote_plus(text))
    yield repr(text)[1:-1]
    yield ascii(text)[1:-1]
    raw = text.encode()
    yield repr(raw)[2:-1]
    yield html.escape(text)
    yield raw.hex()
    yield raw.hex().upper()


def _lower_escapes(quoted: str) -> str:
    first, *others = quoted.split("%")
    return "%".join([first, *(part[:2].lower() + part[2:] for part in others)])


def _in_base64(text: str) -> Iterator[str]:
    """Also as part of something longer, where it may begin at each of three places: then those
    signs are known that stand for nothing else."""
    raw = text.encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(raw).decode()
        yield whole
        yield whole.rstrip("=")
        for before in range(3):
            written = encode(bytes(before) + raw).decode()
            yield written[-(-8 * before // 6) : 8 * (before + len(raw)) // 6]


def _blocks(form: str) -> Iterator[str]:
    if len(form) <= BLOCK_CHARS:
        yield form
        return
    for at in range(0, len(form) - BLOCK_CHARS, BLOCK_CHARS):
        yield form[at : at + BLOCK_CHARS]
    yield form[-BLOCK_CHARS:]


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _cover(forms: Sequence[str]) -> str:
    """Of a sign that is in no form: what is put in place of one completes no other."""
    used = set().union(*forms)
    signs = chain(_SIGNS, map(chr, _PRIVATE_USE))
    return 3 * next(sign for sign in signs if sign not in used)
