"""A WSGI application, for gunicorn and uWSGI."""


def digits(n):
    return max(sum(int(digit) for digit in str(3 ** n)) for _ in range(30))


def application(environment, start):
    number = int(environment["PATH_INFO"].strip("/") or 0)
    start("200 OK", [("Content-Type", "text/plain")])
    return [f"{digits(2000 + number)}\n".encode()]
