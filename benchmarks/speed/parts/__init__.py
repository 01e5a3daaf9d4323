"""The parts of the suite: each has ``FULL`` and ``QUICK`` sizes and ``run(sizes, alone)``.

``alone`` runs a function in a process of its own; what ``run`` returns is written as JSON.
"""
