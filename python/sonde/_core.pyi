import os
from types import TracebackType
from typing import Literal, Optional, Type, Union

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

__version__: str

class Error(Exception):
    status: int
    os_error: int

class Trace:
    def __init__(self, path: _Path) -> None: ...
    def report(
        self,
        view: Optional[str] = "ops",
        sort: Optional[str] = None,
        rows: int = 100,
        group_by: str = "",
        format: Literal["text", "json", "csv"] = "text",
    ) -> str: ...
    def export(self, path: _Path, to: str = "chrome") -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> "Trace": ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...
