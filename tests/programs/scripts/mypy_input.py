# SPDX-License-Identifier: Apache-2.0
"""With two mistakes for a type checker."""
import typing


def number(text: str) -> int:
    return text


def lengths(words: typing.List[str]) -> typing.Dict[str, int]:
    return {word: str(len(word)) for word in words}
