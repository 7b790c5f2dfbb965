# SPDX-License-Identifier: Apache-2.0
"""python -m sonde.spark --master URL FOLDER QUERY: runs a query on a Spark cluster over the tables of many traces.

FOLDER is what `sonde export --to parquet` wrote, at a place that the cluster reads (a path, hdfs://.., s3a://..). QUERY is SQL, or
the name of a ready query of `sonde sql --list`. Needs pyspark.
"""
import argparse
import re
import sys

from .sql import Error, named_tables, queries, query
from .sql._command import write
from .sql._show import plain

TABLES = ("trace", "processes", "metadata", "threads", "ledger", "steps", "ranges", "samples", "memory", "counters",
          "stack_counters", "marks", "gpu_work", "collectives", "activity", "stacks")  # src/export/tables/tables.def


def open_tables(spark, folder, text=None):
    """Makes a view of each table that the query names."""
    for table in named_tables(TABLES, text):
        spark.read.parquet(f"{folder.rstrip('/')}/{table}").createOrReplaceTempView(table)


def run(spark, folder, text):
    """The names of the columns and the rows. `text`: SQL, or the name of a ready query."""
    if re.fullmatch(r"[\w-]+", text):
        text = query(text.replace("-", "_"))
    open_tables(spark, folder, text)
    found = spark.sql(text)
    return found.columns, [tuple(row) for row in found.collect()]


def _setting(text):
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got '{text}'")
    return key, value


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m sonde.spark",
                                     description="Runs a query on Spark over the tables of many traces.")
    parser.add_argument("--master", metavar="URL",
                        help="the cluster: spark://HOST:7077, yarn, k8s://.., local[4] (that of spark-submit's settings)")
    parser.add_argument("--conf", metavar="KEY=VALUE", action="append", default=[], type=_setting,
                        help="a setting of Spark, such as spark.sql.shuffle.partitions=8; may be repeated")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", dest="form", action="store_const", const="json", help="write JSON")
    form.add_argument("--csv", dest="form", action="store_const", const="csv", help="write CSV")
    parser.add_argument("folder", metavar="FOLDER", help="of sonde export --to parquet, as the cluster names it")
    parser.add_argument("query", metavar="QUERY", help="SQL, or one of: " + ", ".join(queries()))
    return parser.parse_args(arguments)


def main(arguments):
    asked = _parse(arguments)
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        print("sonde: spark: this Python has no pyspark: pip install pyspark", file=sys.stderr)
        return 1
    builder = SparkSession.builder.appName("sonde").config("spark.ui.showConsoleProgress", "false")
    for key, value in asked.conf:
        builder = builder.config(key, value)
    if asked.master:
        builder = builder.master(asked.master)
    try:
        spark = builder.getOrCreate()
    except Exception as error:  # no Java, or no such cluster: whatever py4j raises
        print(f"sonde: spark: cannot start Spark: {plain(str(error).partition(chr(10))[0])}", file=sys.stderr)
        return 1
    spark.sparkContext.setLogLevel("ERROR")
    try:
        names, rows = run(spark, asked.folder, asked.query)
    except (Error, PySparkException) as error:
        print(f"sonde: spark: {plain(str(error).partition(chr(10))[0])}", file=sys.stderr)
        return 1
    finally:
        spark.stop()
    return write(asked.form or "text", names, rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
