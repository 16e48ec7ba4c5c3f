"""Output and frames come in pieces of any size; what is made of them does not depend on that."""

from hypothesis import given
from hypothesis import strategies as st

from foliot.worker.hosts.messages import NEWS, FrameReader, Pong, encode_frames
from foliot.worker.hosts.output import CUT, LINE_CHARS_MAX, Cutter

PIECES = st.lists(st.text(alphabet="ab\n\r", max_size=8), max_size=30)
LONG = st.sampled_from([1, 100, LINE_CHARS_MAX - 9, LINE_CHARS_MAX, LINE_CHARS_MAX + 1, 50_000])


@given(PIECES)
def test_lines_are_those_of_the_whole_text(pieces: list[str]) -> None:
    cutter = Cutter()
    lines = [line for piece in pieces for line in cutter.feed(piece)] + cutter.rest()
    expected = "".join(pieces).split("\n")
    if not expected[-1]:
        expected.pop()
    assert lines == [line.removesuffix("\r") for line in expected]


@given(st.lists(LONG, max_size=5), st.integers(1, 20_000))
def test_a_line_is_never_longer_than_it_may_be(lengths: list[int], piece: int) -> None:
    text = "".join("x" * length + "\n" for length in lengths)
    cutter = Cutter()
    lines = [
        line
        for start in range(0, len(text), piece)
        for line in cutter.feed(text[start : start + piece])
    ]
    assert len(lines) == len(lengths)
    for line, length in zip(lines, lengths, strict=True):
        room = LINE_CHARS_MAX - len(CUT)
        assert line == ("x" * length if length <= room else "x" * room + CUT)
    assert not cutter.rest()


@given(st.lists(st.lists(st.integers(0, 2**40), max_size=5), max_size=10), st.integers(1, 50))
def test_frames_are_whole_however_they_come(batches: list[list[int]], piece: int) -> None:
    written = b"".join(encode_frames([Pong(number) for number in batch]) for batch in batches)
    reader = FrameReader()
    frames = [
        frame
        for start in range(0, len(written), piece)
        for frame in reader.feed(written[start : start + piece])
    ]
    assert [[news.number for news in NEWS.decode(frame)] for frame in frames] == batches  # type: ignore[union-attr]
