import os
from types import TracebackType
from typing import (
    Any, Dict, Generic, Iterator, List, Literal, Optional, Sequence, Tuple, Type, TypeVar, Union, overload,
)

_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
_Flops = Literal["full", "torch", "none"]
_AnyRow = TypeVar("_AnyRow")

__version__: str
STACK_METRICS: Tuple[str, ...]  # of export_stacks()

class Error(Exception):
    status: int
    os_error: int

def diff(a: List[_Path], b: List[_Path], by: Optional[str], fail_if: Optional[str], least_percent: float,
         sort: Optional[str], rows: int, format: str, /) -> Tuple[str, int]: ...
def copy_trace(path: _Path, out: _Path, /) -> None: ...
def cut_session(path: _Path, out: _Path, session: int, kept: Tuple[bool, bool, bool],
                spans: List[int], ended: bool, /) -> None: ...
def cut_report(path: _Path, out: _Path, spans: List[int], subject: str, /) -> None: ...

class Column:
    """One column of a table: numpy.asarray(column) makes no copy, and keeps the table alive."""

    name: str
    __array_interface__: Dict[str, Any]
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Union[int, float]: ...

class _Row:
    """What a row of key_averages() and one of events() both have: times in microseconds, memory in
    bytes, torch's attribute names. In the stubs alone: there is no such class."""

    key: str
    count: int  # of an event: 1
    node_id: int  # -1
    is_async: bool
    is_remote: bool  # False
    is_legacy: bool  # False
    is_user_annotation: bool
    use_device: Optional[str]
    device_type: int  # 0: CPU, 1: CUDA; torch's DeviceType where torch is loaded
    scope: int
    overload_name: str
    stack: List[str]
    module: str
    cpu_time_total: float
    self_cpu_time_total: float
    cpu_time: float
    device_time_total: float
    self_device_time_total: float
    device_time: float
    cpu_time_str: str
    cpu_time_total_str: str
    self_cpu_time_total_str: str
    device_time_str: str
    device_time_total_str: str
    self_device_time_total_str: str
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage: int
    self_device_memory_usage: int
    flops: int
    macs: int
    moved_bytes: int
    self_cpu_percent: Any  # -1 until torch's table() sets it
    total_cpu_percent: Any
    total_device_percent: Any

class _Rows(Generic[_AnyRow]):
    """What both sequences of rows have. In the stubs alone, as _Row."""

    self_cpu_time_total: float
    columns: List[str]
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> _AnyRow: ...
    @overload
    def __getitem__(self, index: slice) -> List[_AnyRow]: ...
    def __iter__(self) -> Iterator[_AnyRow]: ...
    def column(self, name: str) -> Column: ...
    def total_average(self) -> "Average": ...
    def table(
        self,
        sort_by: Optional[str] = None,
        row_limit: int = 100,
        max_src_column_width: Optional[int] = 75,
        max_name_column_width: Optional[int] = 55,
        max_shapes_column_width: Optional[int] = 80,
        header: Optional[str] = None,
        top_level_events_only: bool = False,
        time_unit: Optional[str] = None,
        *,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> str: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> Tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

class Average(_Row):
    """A row of key_averages(). Attributes can be set; rows pickle, and are added up as torch's."""

    def add(self, other: Any) -> "Average": ...
    def __iadd__(self, other: Any) -> "Average": ...
    input_shapes: Any  # list of lists, or "" when not grouped by shape
    cpu_time_min: float
    cpu_time_max: float
    process: Optional[int]
    thread: Optional[int]
    has_parent: bool

def make_average(values: Dict[str, Any], by_shape: bool = ...) -> Average: ...

class Averages(_Rows[Average]):
    """A sequence of Average. Rows are made when asked for."""

    has_memory: bool
    has_shapes: bool
    has_stacks: bool
    has_flops: bool
    events: int
    ranges: int
    unmatched_frees: int

class Interval:
    start: float
    end: float
    def __init__(self, start: float, end: float) -> None: ...
    def elapsed_us(self) -> float: ...

class Event(_Row):
    """An entry of events(); its times are since the start."""

    id: int
    name: str
    trace_name: Optional[str]  # None: a [memory] row
    time_range: Interval
    thread: int  # as at::RecordFunction numbers threads
    fwd_thread: int
    tid: int  # of the operating system
    is_python_function: bool  # False
    device_index: int
    device_resource_id: int
    kernels: List[Any]  # []
    sequence_nr: int
    input_shapes: List[Any]
    structured_input_shapes: List[Any]
    structured_input_strides: List[Any]
    input_dtypes: List[str]
    concrete_inputs: List[Any]
    kwinputs: Dict[str, Any]
    cpu_parent: Optional["Event"]
    cpu_children: List["Event"]
    process: int
    index: int
    external_id: int  # torch's number of it; 0: a [memory] row
    linked_correlation_id: int  # 0
    activity_type: str  # cpu_op, user_annotation, cpu_instant_event
    metadata: Optional[Dict[str, Any]]  # None
    flow_id: int  # 0
    flow_type: int  # 0
    flow_start: bool  # False
    python_id: int  # -1
    python_parent_id: int  # -1
    python_module_id: int  # -1

class Events(_Rows[Event]):
    """A sequence of Event in torch's order. Rows are made when asked for."""

    result: Any  # by which it is pickled; set by a profile
    def text(self, number: int) -> str: ...
    def export_stacks(self, path: _Path, metric: str = "self_cpu_time_total") -> None: ...

class Timeline:
    """Every change of what a device holds, in order of time."""

    categories: List[str]
    def __len__(self) -> int: ...
    def column(self, name: str) -> Column: ...  # time_ns, bytes, category, address
    def export(self, path: _Path) -> None: ...  # .html, .json, .json.gz, .raw.json.gz

class Table:
    columns: List[str]
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

class TableStream:
    """A table in batches, as they are read: each stream reads the trace anew."""
    columns: List[str]
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

class Trace:
    def __init__(self, path: _Path) -> None: ...
    def report(
        self,
        view: Optional[str] = "ops",
        sort: Optional[str] = None,
        rows: int = 100,
        group_by: str = "",
        format: Literal["text", "json", "csv"] = "text",
        flops: _Flops = "full",
        *,
        part: Literal["main", "callers", "callees", "tree", "awaiting", "summary"] = "main",
        time_unit: Literal["auto", "us", "ms", "s"] = "auto",
        skip_zero: bool = False,  # lines
        show_all: bool = False,  # samples
        peak: bool = False,  # line-memory
        gil: bool = False,  # samples, functions
    ) -> str: ...
    def averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        group_by: str = "",
        flops: _Flops = "full",
        top_level: bool = False,
    ) -> Averages: ...
    def events(self, *, flops: _Flops = "full") -> Events: ...
    def memory_timeline(self, device: str = "cpu") -> Timeline: ...
    def export_stacks(self, path: _Path, metric: str = "self_cpu_time_total") -> None: ...
    def export(
        self,
        path: _Path,
        to: str = "chrome",
        *,
        metadata: Optional[Dict[str, str]] = None,  # chrome: name to JSON text, at the top level
        name: Optional[str] = None,  # chrome: traceName; None: path
        source: bool = True,  # html: with the text of source files
        left_out: Tuple[str, ...] = (),  # chrome: categories of events ("cpu_op")
    ) -> None: ...
    def table(self, name: str) -> Table: ...  # docs/SCHEMA.md
    def arrow(self, table: str, columns: Optional[Sequence[str]] = None) -> TableStream: ...  # in batches
    def table_names(self) -> List[str]: ...
    def job(self) -> str: ...  # the id of the recording
    def ledger(self) -> List[Tuple[str, int, str]]: ...  # key, count, sentence
    def metadata(self, process: int = 0) -> Dict[str, str]: ...
    def close(self) -> None: ...
    def __enter__(self) -> "Trace": ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...

PROBES: Tuple[Tuple[str, str], ...]  # options of `sonde run`: name; flag, list or rate

def layers_save(trace: _Path, results: _Path) -> int: ...
def results_layers(
    path: _Path, model_name: str, dtype: str, batch_size: int, layers: int
) -> List[Tuple[int, int]]: ...
