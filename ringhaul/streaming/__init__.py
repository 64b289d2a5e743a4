"""Hand finished SSTables to Cassandra nodes, by the protocol that nodes stream with.

| module | contents |
|---|---|
| `messages.py` | the bytes of each message, both ways; pure |
| `owners.py` | who owns which tokens, how rows are sliced, when enough nodes have them; pure |
| `ring.py` | the owners as the cluster reports them now |
| `session.py` | one SSTable to one node |
| `delivery.py` | SSTables to all nodes that own their rows, with retries |
| `allowance.py` | how many bytes the sessions may send now |
"""
