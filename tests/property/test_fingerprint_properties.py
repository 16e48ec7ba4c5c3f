from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.core.fingerprint import fingerprint, normalise
from foliot.core.model import ErrorType, Failure

WORDS = st.sampled_from(["order", "not", "found:", "user", "can't", "read", "(host)", "timeout"])
VALUES = st.one_of(
    st.uuids().map(str),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.datetimes().map(lambda at: at.isoformat()),
    st.binary(min_size=4, max_size=32).map(bytes.hex),
    st.text(alphabet="abc xyz", max_size=50).map(repr),
    st.ip_addresses(v=4).map(str),
)


@settings(deadline=None)
@given(st.lists(WORDS | st.none(), min_size=1, max_size=12), st.data())
def test_changing_the_values_changes_nothing(
    pattern: list[str | None], data: st.DataObject
) -> None:
    def message() -> str:
        return " ".join(word or data.draw(VALUES) for word in pattern)

    one, other = (Failure(ErrorType.HANDLER_ERROR, message()) for _ in range(2))
    assert normalise(one.message) == normalise(other.message)
    assert fingerprint(one) == fingerprint(other)


@settings(deadline=None)
@given(st.text(), st.integers() | st.none(), st.sampled_from(ErrorType))
def test_any_failure_has_a_fingerprint(message: str, status: int | None, error: ErrorType) -> None:
    assert len(fingerprint(Failure(error, message, http_status=status))) == 16


def test_a_lone_surrogate_has_a_fingerprint() -> None:
    assert len(fingerprint(Failure(ErrorType.HANDLER_ERROR, "\ud800"))) == 16
