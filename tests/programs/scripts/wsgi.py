"""A WSGI application, for gunicorn and uWSGI."""


def digits(n):
    return sum(int(digit) for digit in str(3 ** n))


def application(environment, start):
    number = int(environment["PATH_INFO"].strip("/") or 0)
    start("200 OK", [("Content-Type", "text/plain")])
    return [f"{digits(2000 + number)}\n".encode()]
