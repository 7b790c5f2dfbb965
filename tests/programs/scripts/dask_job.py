import dask
import dask.bag


def square(n):
    return n * n


if __name__ == "__main__":
    for scheduler in ("threads", "processes", "sync"):
        with dask.config.set(scheduler=scheduler, num_workers=2):
            print(scheduler, dask.bag.range(1000, npartitions=4).map(square).sum().compute())
