"""
A round trip with Label Studio
==============================

An export of a Label Studio project goes in, a file of predictions comes out. Importing that file
pre-labels the tasks, and Label Studio can then sort them so that people see the least certain ones
first. No server is needed for this.
"""

# %%
# An export is a list of tasks, some of them annotated. Here a crowd has labelled 160 of 240 songs,
# and the labels of the user ``boss`` are trusted.

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from polyfid import MultiFidelityClassifier
from polyfid.crowd import to_rows
from polyfid.labelstudio import read_export, read_items, write_predictions
from polyfid.tables import TableModel, read_labelled

rng = np.random.RandomState(0)
songs = rng.normal(size=(240, 2)).round(3)
truth = songs[:, 0] > 0.8 * songs[:, 1]


def annotation(who, is_rock):
    """One choice of one person, as Label Studio writes it."""
    value = {"choices": ["rock" if is_rock else "pop"]}
    chosen = {"from_name": "genre", "to_name": "song", "type": "choices", "value": value}
    return {"completed_by": {"email": who}, "result": [chosen]}


tasks = []
for k, (loudness, melody) in enumerate(songs):
    given = []
    if k < 160:
        given.append(annotation(f"person{k % 5}", truth[k] ^ (rng.uniform() < 0.2)))
    if k < 40:
        given.append(annotation("boss", truth[k]))
    data = {"loudness": loudness, "melody": melody}
    tasks.append({"id": k + 1, "data": data, "annotations": given})

# %%
# From the export to a model, and from the model to a file to import.

rows = to_rows(*read_export(tasks, trusted=["boss"]), level="majority")
model = TableModel.fit(read_labelled([rows]), MultiFidelityClassifier("rbf", inference="ep"))
proba = model.predict(read_items(tasks))
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "import.json")
    write_predictions(tasks, proba, path, from_name="genre", to_name="song")
    scores = [task["predictions"][0]["score"] for task in json.loads(path.read_text())]

# %%
# The score of a task is the probability of its label. Circles are the twenty tasks that
# Label Studio would show first.

fig, ax = plt.subplots(figsize=(6, 4.2))
points = ax.scatter(*songs.T, c=scores, s=22, cmap="viridis", vmin=0.5, vmax=1)
first = np.argsort(scores)[:20]
ax.scatter(*songs[first].T, s=90, facecolor="none", edgecolor="#c04a00", lw=1.5)
ax.set(xlabel="loudness", ylabel="melody")
fig.colorbar(points, label="score: probability of the label")
plt.show()
