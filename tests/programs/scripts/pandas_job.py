import io

import numpy
import pandas


def make(rows):
    random = numpy.random.default_rng(1)
    return pandas.DataFrame({"group": random.integers(0, 20, rows), "value": random.normal(size=rows),
                             "name": random.choice(["a", "b", "c"], rows)})


def add_up(frame):
    return frame.groupby(["group", "name"]).value.agg(["mean", "std", "count"])


frame = make(100_000)
table = add_up(frame).round(6)
text = io.StringIO()
table.to_csv(text)
print(text.getvalue())
print(frame.merge(table.reset_index(), on=["group", "name"]).value.sum().round(6))
