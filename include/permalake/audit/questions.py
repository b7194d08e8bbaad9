"""Questions of an audit: on one table, or on some laws; each can be answered by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from permalake.audit.laws import Law
from permalake.audit.outcomes import Outcomes, law_outcomes, rule_outcomes
from permalake.audit.scope import Scope
from permalake.audit.suite import Rule
from permalake.contracts.schema import Table


@dataclass(frozen=True)
class AuditQuestion:
    """The rules of ``table``, or some laws.

    Attributes:
        name: Unique within an audit.
    """

    name: str
    table: Table | None = None
    rules: tuple[Rule, ...] = ()
    laws: tuple[Law, ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries that are read; a table's name is one too."""
        sides = tuple(side for law in self.laws for side in law.sides)
        return sides if self.table is None else (self.table.name,)


def law_questions(laws: Sequence[Law]) -> list[AuditQuestion]:
    """Return questions on laws: one for all laws whose sides are compared in the same way."""
    questions = [AuditQuestion(f"law {law.name}", laws=(law,)) for law in laws if law.kind == "violations"]
    for kind in ("balance", "covered"):
        if alike := tuple(law for law in laws if law.kind == kind):
            questions.append(AuditQuestion(f"{kind} laws", laws=alike))
    return questions


def answer(question: AuditQuestion, scope: Scope) -> Outcomes:
    """Return the outcomes, worked out in this process."""
    if question.table is None:
        return law_outcomes(question.laws, scope)
    return rule_outcomes(scope.engine(question.table.name), question.table, question.rules)


def answers(questions: Sequence[AuditQuestion], scope: Scope) -> dict[str, Outcomes]:
    """Return the outcomes of questions by name, from the scope's tasks where it has them."""
    if scope.tasks is not None:
        return dict(scope.tasks.answers(questions, scope))
    return {question.name: answer(question, scope) for question in questions}
