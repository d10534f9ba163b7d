"""Tables 4 and B.3: runs of merged models are found beside their models, and stand against the plain pair's target."""

import json
from pathlib import Path

from tests.report.wanted import RSD, TARGET, answers, line, lines, report, write

MERGED = {
    "draft": ("model=tiny_merged_draft method=rsd prm=tiny_s_merged delta=0.7", {"draft": "tiny_s-0.6", "target": "m"}),
    "target": (
        "model=tiny_merged_target method=rsd prm=tiny_m_merged delta=0.7",
        {"draft": "s", "target": "tiny_m-0.6"},
    ),
}


def test_a_merged_model_stands_against_the_target_it_is_made_for(tmp_path: Path) -> None:
    for name in ("tiny_s-0.6", "tiny_m-0.6"):
        (tmp_path / "merged" / name / "prm").mkdir(parents=True)
        (tmp_path / "merged" / name / "merge.json").write_text(json.dumps({"weight": 0.6}))
    write(tmp_path, TARGET, {"a"}, answers("abc"))
    write(tmp_path, RSD.format(0.7), {"a"}, answers("abc"))
    for words, _ in MERGED.values():
        write(tmp_path, f"{words} results_dir={tmp_path}", {"a", "b", "c"}, answers("abc"))
    report(tmp_path)
    for table in ("table4", "tableB3"):
        for _, labels in MERGED.values():
            row = line(tmp_path, table, method="RSD", **labels)
            assert (row["tiny_chain"], row["tiny_chain_difference"], row["tiny_chain_won"]) == ("100", "66.6667", "2")
        methods = [(row["method"], row["target"]) for row in lines(tmp_path, table)]
        assert methods == [("Single Model", "m"), ("SD", "m"), *[("RSD", "m")] * 3, ("RSD", "tiny_m-0.6")]
