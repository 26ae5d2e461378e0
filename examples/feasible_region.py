"""Where is a design feasible? A study asks for runs of a coarse and of a fine simulator.

A coarse run costs 1, a fine one 10, and the budget is 250: 25 fine runs, if there were no others.
"""

import numpy as np
import pandas as pd
from steps import polyfid, polyfid_json, working_folder

BOX = {"span": (1.0, 6.0), "height": (0.1, 1.0)}
COSTS = {"coarse": 1, "fine": 10}
N_BATCHES, BUDGET = 5, 50


def is_feasible(designs: pd.DataFrame, fine: bool) -> np.ndarray:
    """A beam must be stiff and light; the coarse simulator neglects that slender ones buckle."""
    span, height = designs["span"], designs["height"]
    stiff = height**1.5 / span > 0.055
    light = span * height < 2.2
    slender = (span / height > 9.0) if fine else False
    return np.where(stiff & light & ~np.asarray(slender), "feasible", "fails")


def answered(designs: pd.DataFrame) -> pd.DataFrame:
    """Designs with what the simulator of their level says."""
    by_fine, by_coarse = (is_feasible(designs, fine) for fine in (True, False))
    return designs.assign(label=np.where(designs["level"] == "fine", by_fine, by_coarse))


def main() -> None:
    """From a box of designs to those that may be built."""
    costs = ",".join(f"{level}={cost}" for level, cost in COSTS.items())
    space = ",".join(f"{name}={low}:{high}" for name, (low, high) in BOX.items())
    rng = np.random.RandomState(5)
    with working_folder():
        new = pd.DataFrame({name: rng.uniform(*ends, 2000) for name, ends in BOX.items()})
        new.to_csv("new.csv", index=False)
        truth = is_feasible(new, fine=True)

        polyfid(f"study init study.polyfid --space {space} --costs {costs} --kernel rbf")
        for _ in range(N_BATCHES):
            polyfid(f"study ask study.polyfid --budget {BUDGET} -o next.csv")
            answered(pd.read_csv("next.csv")).to_csv("next.csv", index=False)
            polyfid("study tell study.polyfid next.csv")
        status = polyfid_json("study status study.polyfid --labelled labelled.csv")
        assert status["spent"] <= N_BATCHES * BUDGET, status["spent"]

        polyfid("fit labelled.csv --levels coarse,fine --kernel rbf -o model.polyfid")
        polyfid("predict model.polyfid new.csv -o predictions.csv")
        predicted = pd.read_csv("predictions.csv")
        right = (predicted["label"] == truth).mean()

        print(f"{right:.1%} of 2000 designs are told rightly")
        assert right > 0.93, right

        allowed = predicted["p_feasible"] > 0.95
        wrong = (truth[allowed] != "feasible").mean()
        print(f"Decision: {allowed.sum()} designs may be built; {wrong:.1%} of them would fail")
        assert allowed.sum() > 200, allowed.sum()
        assert wrong < 0.05, wrong


if __name__ == "__main__":
    main()
