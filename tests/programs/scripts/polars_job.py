import polars


def make(rows):
    return polars.DataFrame({"n": range(rows)}).with_columns(
        group=polars.col("n") % 17, value=(polars.col("n") * 7919 % 1009).cast(polars.Float64))


def add_up(frame):
    return (frame.lazy().filter(polars.col("value") > 10).group_by("group")
            .agg(polars.col("value").mean().round(6), polars.len()).sort("group").collect())


print(add_up(make(300_000)).write_csv())
print(make(1000).select(polars.col("n").map_elements(lambda n: n * 2, return_dtype=polars.Int64).sum()))
