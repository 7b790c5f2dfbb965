# SPDX-License-Identifier: Apache-2.0
"""Wrappers of functions that turn a session on while those run."""
import functools

def _wrap_coroutine(function, enter, leave):
    async def wrapper(*args, **kwargs):
        enter()
        try:
            return await function(*args, **kwargs)
        finally:
            leave()
    return wrapper


def _wrap_generator(function, enter, leave):
    def wrapper(*args, **kwargs):
        enter()
        try:
            return (yield from function(*args, **kwargs))
        finally:
            leave()
    return wrapper


def _wrap_async_generator(function, enter, leave):
    async def wrapper(*args, **kwargs):
        inner, sent, error = function(*args, **kwargs), None, None
        enter()
        try:
            while True:
                try:
                    value = await (inner.asend(sent) if error is None else inner.athrow(error))
                except StopAsyncIteration:
                    return
                sent = error = None
                try:
                    sent = yield value
                except GeneratorExit:
                    raise
                except BaseException as raised:
                    error = raised
        finally:
            try:
                await inner.aclose()
            finally:
                leave()
    return wrapper


def wrap_suspended(function, enter, leave):
    """What can be suspended, entered from its first step to its last; None if it is another kind."""
    import inspect
    for is_kind, wrap in ((inspect.iscoroutinefunction, _wrap_coroutine),
                          (inspect.isasyncgenfunction, _wrap_async_generator),
                          (inspect.isgeneratorfunction, _wrap_generator)):
        if is_kind(function):
            return functools.wraps(function)(wrap(function, enter, leave))
    return None


def mark_coroutine(thing, function):
    """An object that stands for a coroutine function is taken for one."""
    import inspect
    if inspect.iscoroutinefunction(function):
        if hasattr(inspect, "markcoroutinefunction"):
            inspect.markcoroutinefunction(thing)
        else:
            import asyncio.coroutines
            thing._is_coroutine = asyncio.coroutines._is_coroutine


def wrap(session, thing):
    """A function, or a method of any kind, that has the session on while it runs."""
    if isinstance(thing, (classmethod, staticmethod)):
        return type(thing)(wrap(session, thing.__func__))
    if not callable(thing):
        raise TypeError(f"sonde: cannot decorate {thing!r}: it cannot be called")
    return _wrap(session, thing)


def _wrap(session, function):
    def wrapper(*args, **kwargs):
        session.enable()
        try:
            return function(*args, **kwargs)
        finally:
            session.disable()
    return (wrap_suspended(function, session.enable, session.disable)
            or functools.wraps(function)(wrapper))
