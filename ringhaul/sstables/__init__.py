"""SSTables: rows of CQL cells to the files of Cassandra's BIG format, versions nb and oa. Pure.

One SSTable is a group of files, `nb-<id>-big-<component>` or `oa-...`, and each component has its
module:

| module | component | contents |
|---|---|---|
| `data.py` | Data.db | the partitions and their rows |
| `index.py` | Index.db | each partition's key and its position in Data.db |
| `summary.py` | Summary.db | every 128th key, with its position in Index.db |
| `bloom_filter.py` | Filter.db | the Bloom filter of the keys |
| `statistics.py` | Statistics.db | minima, maxima, histograms and the serialization header |
| `compression.py` | CompressionInfo.db, and Data.db as chunks | LZ4 |
| `components.py` | Digest.crc32, TOC.txt | the checksum of Data.db, the list of components |

`version.py` has what differs between versions, `layout.py` says what stands in which column,
`columns.py` collects rows, `order.py` sorts them and `build.py` makes the files. All numbers are
big-endian unless a docstring says otherwise. A *vint* is Cassandra's variable-length integer
(`vints.py`). The layouts were read in the classes of Cassandra 5.0 that the docstrings name;
versions 4.0 to 5.0 read nb.
"""
