"""What `zip(strict=True)` and `itertools.pairwise` do from Python 3.10 on, for Python 3.9 as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import tee, zip_longest
from typing import Any, TypeVar, overload

_T = TypeVar("_T")
_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_END = object()


@overload
def equal_zip(first: Iterable[_A], second: Iterable[_B], /) -> Iterator[tuple[_A, _B]]: ...
@overload
def equal_zip(first: Iterable[_A], second: Iterable[_B], third: Iterable[_C], /) -> Iterator[tuple[_A, _B, _C]]: ...
@overload
def equal_zip(*iterables: Iterable[_T]) -> Iterator[tuple[_T, ...]]: ...
def equal_zip(*iterables: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """As `zip`, for iterables that are equally long. Raises ValueError where one ends before another."""
    for together in zip_longest(*iterables, fillvalue=_END):
        if any(one is _END for one in together):
            raise ValueError("equal_zip() was given iterables of different lengths")
        yield together


def pairwise(iterable: Iterable[_T]) -> Iterator[tuple[_T, _T]]:
    """Each item with the one that follows it."""
    these, following = tee(iterable)
    next(following, None)
    return zip(these, following)
