"""A Label Studio project of messages: two people label them, and their boss some of them again.

Pre-label the rest of the project, and find the messages that people should look at first.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from steps import polyfid, polyfid_json, working_folder

WORDS = {
    "complaint": ("broken", "late", "refund", "wrong", "angry", "damaged", "waiting", "missing"),
    "praise": ("thanks", "great", "perfect", "happy", "fast", "love", "friendly", "excellent"),
}
OTHER = ("order", "my", "parcel", "shop", "today", "phone", "box", "bought", "week", "colour")
N, N_LABELLED, N_TRUSTED = 300, 180, 50


def make_project(rng: np.random.RandomState) -> tuple[list[dict[str, Any]], list[str]]:
    """Tasks as Label Studio exports them, and the truth."""

    def annotation(who: str, label: str) -> dict[str, Any]:
        choice = {"from_name": "kind", "to_name": "message", "type": "choices"}
        person = {"id": len(who), "email": f"{who}@example.org"}
        return {"completed_by": person, "result": [{**choice, "value": {"choices": [label]}}]}

    tasks, truth = [], []
    for k in range(N):
        right, other = ("complaint", "praise") if rng.uniform() < 0.5 else ("praise", "complaint")
        telling = rng.choice(WORDS[right], 2, replace=False)
        text = " ".join(rng.permutation([*telling, *rng.choice(OTHER, 7)]))
        said = []
        if k < N_LABELLED:
            for who, wrong in (("ann", 0.1), ("bernard", 0.3)):
                said.append(annotation(who, other if rng.uniform() < wrong else right))
        if k < N_TRUSTED:
            said.append(annotation("boss", right))
        data = {"text": text, "screenshot": f"https://example.org/{k}.png"}
        tasks.append({"id": 1000 + k, "data": data, "annotations": said})
        truth.append(right)
    return tasks, truth


def main() -> None:
    """From an export of the project to what it imports."""
    project = "export.json --text text --trusted boss@example.org"
    tags = "--from-name kind --to-name message"
    with working_folder():
        tasks, truth = make_project(np.random.RandomState(1))
        Path("export.json").write_text(json.dumps(tasks))

        polyfid(f"check {project}")
        people = polyfid_json(f"annotators {project}")["annotators"]
        for one in people:
            print(f"{one['worker']} agrees with the boss in {one['agreement_gold']:.0%}")
        assert people[0]["worker"] == "bernard@example.org", people

        polyfid(f"fit {project} --kernel rbf -o model.polyfid")
        found = polyfid_json(f"evaluate {project} --kernel rbf")
        print(found["sentence"])
        assert found["verdict"] != "hurt", found["sentence"]

        polyfid("predict model.polyfid export.json -o predictions.csv")
        predicted = pd.read_csv("predictions.csv")
        new = np.arange(N) >= N_LABELLED
        right = (predicted["label"] == truth)[new].mean()
        print(f"{right:.0%} of {new.sum()} messages that nobody has labelled are right")
        assert right > 0.9, right

        polyfid(
            f"convert predictions.csv --to labelstudio --tasks export.json {tags} -o import.json"
        )
        made = json.loads(Path("import.json").read_text())
        assert [task["data"] for task in made] == [task["data"] for task in tasks]
        scores = {task["id"]: task["predictions"][0]["score"] for task in made}
        first = sorted(scores, key=scores.__getitem__)[:10]
        assert all(0.5 <= score <= 1.0 for score in scores.values())
        print("Decision: import import.json; people look at these tasks first:", *first)
        polyfid("report model.polyfid --folds 0 -o report.html")


if __name__ == "__main__":
    main()
