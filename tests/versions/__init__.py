"""The commands against older versions of Cassandra: `make test-versions`, outside `make test`."""
