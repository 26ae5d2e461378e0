"""Twelve people say which photos are sharp; some photos have a trusted label.

Who of them is reliable, does the crowd help, and which photos are sharp?
"""

import numpy as np
import pandas as pd
from steps import polyfid, polyfid_json, working_folder

N, N_GOLD = 300, 100


def make_tables() -> pd.Series:
    """Write items.csv, answers.csv and gold.csv; returns the truth by photo."""
    rng = np.random.RandomState(7)
    measured = ["edges", "noise", "light", "contrast"]
    items = pd.DataFrame(rng.normal(size=(N, 4)).round(3), columns=measured)
    items.insert(0, "item_id", [f"photo{k:03d}" for k in range(N)])
    sharp = (1.5 * items["edges"] - items["noise"] > 0).to_numpy()
    rows = []
    for k in range(12):
        said = rng.choice(N, 200, replace=False)
        wrong = np.full(len(said), (0.1, 0.15, 0.45)[k % 3])
        if k == 0:  # nearly always right, but not in dark photos
            wrong = np.where(items["light"][said] < 0, 0.5, 0.02)
        answer = sharp[said] ^ (rng.uniform(size=len(said)) < wrong)
        who = f"person{k:02d}"
        rows += [(items["item_id"][i], who, a) for i, a in zip(said, answer, strict=True)]
    answers = pd.DataFrame(rows, columns=["item_id", "user_id", "answer"])
    truth = pd.Series(np.where(sharp, "sharp", "blurred"), index=items["item_id"])
    answers["answer"] = np.where(answers["answer"], "sharp", "blurred")
    trusted = items["item_id"].sample(N_GOLD, random_state=0)
    items.to_csv("items.csv", index=False)
    answers.to_csv("answers.csv", index=False)
    gold = pd.DataFrame({"item_id": trusted, "answer": truth[trusted].to_numpy()})
    gold.to_csv("gold.csv", index=False)
    return truth


def main() -> None:
    """From tables to the photos that an expert should look at."""
    tables = "--items items.csv --answers answers.csv --gold gold.csv"
    with working_folder():
        truth = make_tables()
        polyfid(f"check {tables}")

        # Who is reliable? Persons 2, 5, 8 and 11 guess; person 0 cannot judge dark photos.
        polyfid(f"annotators {tables} -o annotators.csv")
        people = pd.read_csv("annotators.csv")
        worst = {*people.sort_values("agreement_gold")["worker"][:4]}
        assert worst == {"person02", "person05", "person08", "person11"}, worst
        hint = people.set_index("worker")["errs_most"]["person00"]
        assert hint.startswith("where light is not above"), hint

        polyfid(f"fit {tables} --kernel rbf -o model.polyfid")
        found = polyfid_json(f"evaluate {tables} --kernel rbf")
        print(found["sentence"])
        accuracy = {name: share["value"] for name, share in found["accuracy"].items()}
        print("Accuracy on held-out trusted photos:", accuracy)
        assert found["verdict"] != "hurt", found["sentence"]
        assert accuracy["polyfid"] > 0.85, accuracy

        # All photos, most of which nobody trustworthy has looked at.
        polyfid("predict model.polyfid items.csv -o predictions.csv")
        predicted = pd.read_csv("predictions.csv").set_index("item_id")
        unseen = truth.index.difference(pd.read_csv("gold.csv")["item_id"])
        right = (predicted["label"][unseen] == truth[unseen]).mean()
        print(f"{right:.0%} of {len(unseen)} photos without a trusted label are right")
        assert right > 0.9, right

        polyfid("report model.polyfid --folds 0 -o report.html")
        doubt = (predicted["p_sharp"] - 0.5).abs().sort_values().index[:5]
        print("Decision: keep the photos labelled sharp, let an expert look at", *doubt)


if __name__ == "__main__":
    main()
