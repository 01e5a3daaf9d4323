"""The run of a study: cells, the store that keeps them, and the processes that compute them."""
