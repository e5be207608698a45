"""Parts of a document that a person has written, each with its place in it: what is of another shape than it must be is refused there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import InvalidDocumentError
from harness.scenario.rules import LABEL_VALUE, TAINT_KEY
from harness.targets.kubernetes.api import Object

NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""Of an object. Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names."""


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping of a document.

    Attributes:
        value: It.
        place: Where it stands in the document; empty: it is the whole of it.
        document: The document.
    """

    value: Object
    place: str
    document: str

    def part(self, key: str) -> "Part":
        """A mapping in it; an empty one where nothing is written.

        Raises:
            InvalidDocumentError: When something else stands there.
        """
        found = self.value.get(key)
        return self._checked({} if found is None else found, self.at(key))

    def parts(self, key: str) -> list["Part"]:
        """The mappings of a list in it.

        Raises:
            InvalidDocumentError: When something else stands there.
        """
        return [self._checked(one, f"{self.at(key)}[{index}]") for index, one in enumerate(self.listed(key))]

    def named(self, key: str) -> list["Part"]:
        """As ``parts``, where each must have a name.

        Raises:
            InvalidDocumentError: When something else stands there.
        """
        for one in (found := self.parts(key)):
            if not one.value.get("name"):
                raise one.refusal("", "has no name")
        return found

    def listed(self, key: str) -> list[object]:
        """A list in it; an empty one where nothing is written.

        Raises:
            InvalidDocumentError: When something else stands there.
        """
        found = self.value.get(key)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self.refusal(key, f"is no list but {found!r}")
        return found

    def texts(self, key: str) -> Mapping[str, str]:
        """The texts by name that stand there, as labels and annotations are.

        Raises:
            InvalidDocumentError: When something else stands there.
        """
        found = self.part(key)
        for name, value in found.value.items():
            if not TAINT_KEY.fullmatch(str(name)):  # YAML has numbers for keys, too
                raise found.refusal("", f"has the key {name!r}", "write keys as Kubernetes has them, like example.com/team")
            if not isinstance(value, str):
                raise found.refusal(name, f"is no text but {value!r}", "put it in quotes")
        return found.value

    def check_metadata(self) -> None:
        """See that labels and annotations are what Kubernetes takes.

        Raises:
            InvalidDocumentError: When they are not.
        """
        metadata = self.part("metadata")
        metadata.texts("annotations")
        for name, value in metadata.texts("labels").items():
            if not LABEL_VALUE.fullmatch(value):
                advice = "at most 63 letters, digits, '-', '_' and '.', the first and the last a letter or a digit"
                raise metadata.refusal(f"labels[{name}]", f"{value!r} is no value of a label", advice)

    def check_name(self) -> None:
        """See that it can be called as it is.

        Raises:
            InvalidDocumentError: When Kubernetes takes no such name.
        """
        name = self.part("metadata").value.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise self.refusal("metadata.name", f"{name!r} is no name", "write small letters, digits, '-' and '.'")

    def at(self, key: str) -> str:
        """The place of a field of it."""
        return ".".join(part for part in (self.place, key) if part)

    def refusal(self, key: str, problem: str, advice: str = "") -> InvalidDocumentError:
        """The error for a field of it; empty: for itself."""
        return InvalidDocumentError(document=self.document, field=self.at(key), problem=problem, advice=advice)

    def _checked(self, value: object, place: str) -> "Part":
        if not isinstance(value, dict):
            raise InvalidDocumentError(document=self.document, field=place, problem=f"is no mapping but {value!r}")
        return Part(value, place, self.document)
