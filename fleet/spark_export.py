"""Exports recordings on the workers of a Spark cluster: spark-submit spark_export.py LIST DIR [PARTS]

LIST names a recording a line, by paths that all workers see; DIR is a folder that all workers see. A part that fails is run again by
Spark, and does what is left of it.
"""

import subprocess
import sys

from pyspark.sql import SparkSession


def export(to):
    def run(names):
        listed = "".join(f"{name}\n" for name in names)
        if not listed:
            return
        command = ["dipc", "export", "--files-from", "-", "--to", to, "--threads", "1", "--format", "json"]
        done = subprocess.run(command, input=listed, capture_output=True, text=True)
        # 6: a recording was cut or damaged, and what is whole of it was exported.
        if done.returncode not in (0, 6):
            raise RuntimeError(f"dipc export ended with {done.returncode}: {done.stderr}")
        yield done.stdout

    return run


def main():
    listing, to = sys.argv[1], sys.argv[2]
    parts = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    spark = SparkSession.builder.appName("dipc export").getOrCreate()
    with open(listing) as file:
        names = [line.strip() for line in file if line.strip()]
    for summary in spark.sparkContext.parallelize(names, min(parts, max(len(names), 1))).mapPartitions(export(to)).collect():
        print(summary)


main()
