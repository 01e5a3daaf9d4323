"""A file that is larger than the memory it may take."""

import gzip
import tracemalloc

import pyarrow as pa

from setconv.io.reading import open_records


def test_fifty_megabytes_of_compressed_csv_stream_in_a_fraction_of_that(tmp_path):
    path = tmp_path / "data.csv.gz"
    rows = b"".join(
        b'%d,"a text of some words, ""quoted"", number %d",label\n' % (n, n) for n in range(10_000)
    )
    times = 50_000_000 // len(rows) + 1
    # A gzip file may be made of many, one after the other.
    member = gzip.compress(rows, 1)
    path.write_bytes(gzip.compress(b"id,text,label\n") + member * times)
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    tracemalloc.start()
    try:
        with open_records(path) as reader:
            held = [(len(table), pool.bytes_allocated() - before) for table in reader.batches()]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(count for count, _ in held) == 10_000 * times
    assert peak < 25 << 20
    assert max(size for _, size in held) < 25 << 20
