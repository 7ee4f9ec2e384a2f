"""What a rule is: a code, a page, and examples that are its tests."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.findings import Severity


@dataclass(frozen=True)
class Example:
    """An expression before and after; `after` None means that it is refused with the rule's code."""

    before: str
    after: str | None


@dataclass(frozen=True)
class Rule:
    """One finding code, or one concept that is carried over, with the page that explains it."""

    code: str
    title: str
    severity: Severity
    text: str
    examples: tuple[Example, ...] = ()

    def page(self) -> str:
        """The rule's page as Markdown."""
        parts = [f"# {self.code}: {self.title}", f"*{self.severity.value}*", self.text.strip()]
        for example in self.examples:
            parts.append(f"```python\n{example.before}\n```")
            if example.after is None:
                parts.append(f"is refused with {self.code}.")
            else:
                parts.append(f"becomes\n\n```python\n{example.after}\n```")
        return "\n\n".join(parts) + "\n"
