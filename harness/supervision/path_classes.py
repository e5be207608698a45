"""The class of a path: what is the same of it in the next run of the job. Numbers and random parts are ``*``.

Standard library only: the recorder's enumeration and the live triggers must agree.
"""

import itertools
import re

_UUID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f])", re.IGNORECASE)
_TEMPFILE = re.compile(r"(?<![A-Za-z0-9])tmp[a-z0-9_]{8}(?![a-z0-9])")
"""``tempfile`` makes names of eight characters after its prefix, ``tmp`` unless told. Source: https://docs.python.org/3/library/tempfile.html"""

_SEGMENT = re.compile(r"[^.\-]+")
_WORD = re.compile(r"[A-Za-z0-9]+")
_NUMBER = re.compile(r"[0-9]+")
_HEXADECIMAL = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_RUN = re.compile(r"[0-9]+|[a-z]+|[A-Z]+")
_DIGIT_BEFORE_LETTER = re.compile(r"[0-9][a-z]")
_VOWEL = re.compile(r"[aeiouy]")
_CONSONANTS = re.compile(r"[b-df-hj-np-tv-xz]{5}")

HASH_CHARACTERS_MIN = 8
"""So long a hexadecimal word is random: no job is written whose words of eight letters know only ``a`` to ``f``."""

_SHORT_HASH_CHARACTERS_MIN = 5
"""A shorter one is, where it has letters and digits, as Ray's trial ids have."""

_TEMPFILE_PART = re.compile(r"[a-z0-9_]{8}")
_ALTERNATIONS_MIN = 2


def path_class(path: str) -> str:
    """The class of a relative path; the class of a class is itself.

    A random part that looks like a word cannot be told from one: about one in ten of the names that ``tempfile`` makes after a prefix of
    the job's own. After ``tmp`` all are known.
    """
    return "/".join(_name_class(name) for name in path.split("/"))


def _name_class(name: str) -> str:
    name = _TEMPFILE.sub("tmp*", _UUID.sub("*", name))
    return _SEGMENT.sub(lambda found: _segment_class(found.group()), name)


def _segment_class(segment: str) -> str:
    """Of what stands between dots and dashes."""
    words = _WORD.findall(segment)
    if _TEMPFILE_PART.fullmatch(segment) and (any(map(_is_random, words)) or _DIGIT_BEFORE_LETTER.search(segment) or _is_no_word(segment)):
        return "*"
    return _WORD.sub(lambda found: "*" if _is_random(found.group()) else _NUMBER.sub("*", found.group()), segment)


def _is_no_word(segment: str) -> bool:
    letters = segment.replace("_", "")
    return letters.isalpha() and (_VOWEL.search(letters) is None or _CONSONANTS.search(letters) is not None)


def _is_random(word: str) -> bool:
    """Whether letters and digits, without anything between them, are no word with a number."""
    digits: list[bool] = [run.isdigit() for run in _RUN.findall(word)]
    changes = sum(left != right for left, right in itertools.pairwise(digits))
    if _HEXADECIMAL.fullmatch(word) is None or word.isdigit():
        return changes >= _ALTERNATIONS_MIN
    return len(word) >= HASH_CHARACTERS_MIN or (changes > 0 and len(word) >= _SHORT_HASH_CHARACTERS_MIN) or changes >= _ALTERNATIONS_MIN
