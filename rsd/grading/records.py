"""From a record to its line in ``grades.jsonl``::

grade = await grade_record(grader, classes_of(grader, earlier), problem, record)
"""

from collections.abc import Iterable
from dataclasses import asdict

from rsd.grading.classes import AnswerClasses
from rsd.grading.pool import Grader
from rsd.records import Problem, Record
from rsd.store import GradeRecord


def classes_of(grader: Grader, graded: Iterable[GradeRecord]) -> AnswerClasses:
    """The answer classes of a run, going on from its earlier grades."""
    return AnswerClasses(grader.first_equal, ((g.question_id, g.extracted, g.answer_class) for g in graded))


async def grade_record(grader: Grader, classes: AnswerClasses, problem: Problem, record: Record) -> GradeRecord:
    """Grade one sample, and find the class of its answer among those of its question."""
    grade = await grader.grade(
        gold=problem.answer, response=record.response, kind=problem.kind, choices=problem.choices
    )
    answer_class = await classes.place(record.question_id, grade.extracted)
    return GradeRecord(question_id=record.question_id, sample=record.sample, **asdict(grade), answer_class=answer_class)
