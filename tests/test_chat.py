"""A chat is the template's own, with the system message that is asked for and a date that stays."""

from datetime import UTC, datetime

from transformers import AutoTokenizer

from rsd.chat import DATE, chat_text
from tests.conftest import compose_config

DATED = (
    "{{ date_string or strftime_now('%d %b %Y') }}|"
    "{% for message in messages %}{{ message.role }}: {{ message.content }}|{% endfor %}"
)


def test_system_and_question_stand_in_the_template_and_never_todays_date() -> None:
    tokenizer = AutoTokenizer.from_pretrained(compose_config().model.policies["draft"].path)
    tokenizer.chat_template = DATED
    assert chat_text(tokenizer, "1+1?", "Think.") == f"{DATE}|system: Think.|user: 1+1?|"
    assert chat_text(tokenizer, "1+1?") == f"{DATE}|user: 1+1?|"
    assert f"{datetime.now(UTC):%d %b %Y}" not in chat_text(tokenizer, "1+1?")
