"""The least that the models have to read for what was decoded."""

from rsd.records import Record, Role, Solution


def least_tokens(solution: Solution | Record, role: Role) -> int:
    """Each token once per model that must read it: the prompt, and every beginning of a response that
    the model continued or scored. The last token of a piece it wrote is its output, not yet read."""
    read: set[tuple[int, ...]] = set()
    before: tuple[int, ...] = ()
    for proposal in solution.proposals:
        after = before + proposal.token_ids
        if role in proposal.usage:
            unread = 1 if role == proposal.origin or proposal.finish == "eos" else 0  # no PRM reads EOS
            read |= {after[:length] for length in range(1, len(after) + 1 - unread)}
        if proposal.kept:
            before = after
    called = any(role in proposal.usage for proposal in solution.proposals)
    return solution.prompt_tokens + len(read) if called else 0
