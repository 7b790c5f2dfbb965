from joblib import Parallel, delayed


def work(n):
    return sum(i * i for i in range(n * 100))


if __name__ == "__main__":
    for backend in ("loky", "multiprocessing", "threading"):
        print(backend, sum(Parallel(n_jobs=2, backend=backend)(delayed(work)(n) for n in range(40))))
